// The fixture of the MapDriver contract suites.
#ifndef METS_TESTS_CONTRACT_MAP_DRIVER_FIXTURE_H_
#define METS_TESTS_CONTRACT_MAP_DRIVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/backends.h"

namespace mets {

// A device, one client's driver for it, and helpers. Checks at the end that
// no descriptor has leaked.
class MapDriverContract : public ::testing::TestWithParam<Backend> {
 public:
  // A range, and chunks that fill it (mapped or not).
  struct Buffer {
    char* range = nullptr;
    Bytes size;
    std::vector<ChunkHandle> chunks;
  };

  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
    fds_before_ = CountOpenFds();
    pool_ = GetParam().make_pool(MiB(256));
    map_ = GetParam().make_map();
    const std::vector<Bytes> classes = pool_->info().chunk_classes;
    small_ = classes.front();
    large_ = classes[std::min(GetParam().large_class, classes.size() - 1)];
  }
  void TearDown() override {
    if (!GetParam().missing.empty()) return;
    map_.reset();
    for (UniqueFd& fd : fds_)
      EXPECT_TRUE(pool_->ReleaseChunk(std::move(fd)).ok());
    fds_.clear();
    pool_.reset();
    EXPECT_EQ(CountOpenFds(), fds_before_) << "descriptors leaked";
  }

  char* Reserve(Bytes size) {
    absl::StatusOr<char*> range = map_->ReserveRange(size);
    EXPECT_TRUE(range.ok()) << range.status();
    if (!range.ok()) return nullptr;
    reserved_.emplace(*range, size);
    return *range;
  }

  // A fresh chunk of the pool, imported.
  ChunkHandle MakeChunk(Bytes size) {
    absl::StatusOr<UniqueFd> fd = pool_->CreateChunk(size);
    EXPECT_TRUE(fd.ok()) << fd.status();
    if (!fd.ok()) return ChunkHandle::kNone;
    absl::StatusOr<ChunkHandle> chunk =
        map_->ImportChunk(UniqueFd(dup(fd->get())), size);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    fds_.push_back(*std::move(fd));
    return chunk.ok() ? *chunk : ChunkHandle::kNone;
  }

  Buffer MakeBuffer(const std::vector<Bytes>& sizes) {
    Buffer buffer;
    for (Bytes size : sizes) {
      buffer.size += size;
      buffer.chunks.push_back(MakeChunk(size));
    }
    buffer.range = Reserve(buffer.size);
    return buffer;
  }

  ExtentHandle MakeExtent(Bytes size) {
    absl::StatusOr<UniqueFd> fd = pool_->CreateExtent(size);
    EXPECT_TRUE(fd.ok()) << fd.status();
    if (!fd.ok()) return ExtentHandle::kNone;
    absl::StatusOr<ExtentHandle> extent =
        map_->RegisterExtent(*std::move(fd), size);
    EXPECT_TRUE(extent.ok()) << extent.status();
    return extent.ok() ? *extent : ExtentHandle::kNone;
  }
  std::vector<ExtentPiece> MakeSlot(Bytes size) {
    return {{MakeExtent(size), Bytes(), size}};
  }

  std::string Read(const Buffer& b) {
    return GetParam().read(b.range, b.size.count());
  }
  // Writes a pattern into a mapped buffer, and returns it.
  std::string Overwrite(const Buffer& b, unsigned seed) {
    std::string bytes = Pattern(b.size.count(), seed);
    GetParam().write(b.range, bytes);
    return bytes;
  }
  // Maps a buffer, then Overwrite.
  std::string Fill(const Buffer& b, unsigned seed) {
    const absl::Status mapped = map_->Map(b.range, b.chunks);
    EXPECT_TRUE(mapped.ok()) << mapped;
    return mapped.ok() ? Overwrite(b, seed) : std::string();
  }

  // The outcome of a copy, once it has finished.
  absl::Status Finish(const absl::StatusOr<Fence>& fence) {
    return fence.ok() ? map_->Wait(*fence) : fence.status();
  }
  void Done(const absl::StatusOr<Fence>& fence) {
    const absl::Status status = Finish(fence);
    EXPECT_TRUE(status.ok()) << status;
  }
  void Evict(const Buffer& b, const std::vector<ExtentPiece>& slot) {
    EXPECT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
    Done(map_->CopyOut(b.range, b.chunks, slot, b.size,
                       StreamHandle::kHostOrder));
    EXPECT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  }

  std::unique_ptr<PoolDriver> pool_;
  std::unique_ptr<MapDriver> map_;
  Bytes small_;
  Bytes large_;
  std::map<char*, Bytes> reserved_;

 private:
  std::vector<UniqueFd> fds_;
  int fds_before_ = 0;
};

// Four buffers share chunks for two; each has a slot. Every step does
// something to one of them; a model knows what each must contain.
class RandomLife {
 public:
  explicit RandomLife(MapDriverContract& test) : t_(test) {
    const Bytes size = t_.large_ + t_.small_ * 3;
    for (int i = 0; i < 4; ++i) {
      Member member;
      member.buffer.size = size;
      member.buffer.range = t_.Reserve(size);
      member.slot = t_.MakeSlot(size);
      member.bytes = std::string(size.count(), '\0');
      members_.push_back(std::move(member));
    }
    for (int i = 0; i < 2; ++i) {
      free_.push_back({t_.MakeChunk(t_.large_), t_.MakeChunk(t_.small_),
                       t_.MakeChunk(t_.small_), t_.MakeChunk(t_.small_)});
    }
    stream_ = *t_.map_->CreateStream();
  }

  void Step() {
    Member& member = members_[random_() % members_.size()];
    if (member.resident) {
      switch (random_() % 4) {
        case 0:
          return Write(member);
        case 1:
          return Remap(member);
        default:
          return Evict(member);
      }
    }
    if (free_.empty()) {
      for (Member& other : members_) {
        if (other.resident) return Evict(other);
      }
    }
    Restore(member);
  }

  // Checks everything and lets go.
  void Finish() {
    for (Member& member : members_) {
      if (member.resident) Evict(member);
    }
    for (Member& member : members_) {
      Restore(member);
      Evict(member);
    }
    t_.map_->DestroyStream(stream_);
  }

 private:
  struct Member {
    MapDriverContract::Buffer buffer;
    std::vector<ExtentPiece> slot;
    std::string bytes;
    bool resident = false;
  };

  void Write(Member& member) {
    std::string piece = Pattern(1000, random_());
    const size_t at = random_() % (member.bytes.size() - piece.size());
    t_.GetParam().write(member.buffer.range + at, piece);
    member.bytes.replace(at, piece.size(), piece);
  }
  void Remap(Member& member) {
    auto& [range, size, chunks] = member.buffer;
    EXPECT_TRUE(t_.map_->Unmap(range, chunks).ok());
    EXPECT_TRUE(t_.map_->Map(range, chunks).ok());
    EXPECT_EQ(t_.Read(member.buffer), member.bytes);
  }
  void Evict(Member& member) {
    auto& [range, size, chunks] = member.buffer;
    if (random_() % 2 == 0) {
      EXPECT_TRUE(t_.map_->BlockAccess(range, chunks).ok());
    }
    t_.Done(t_.map_->CopyOut(range, chunks, member.slot, size, stream_));
    EXPECT_TRUE(t_.map_->Unmap(range, chunks).ok());
    free_.push_back(std::move(chunks));
    chunks.clear();
    member.resident = false;
  }
  void Restore(Member& member) {
    auto& [range, size, chunks] = member.buffer;
    chunks = std::move(free_.back());
    free_.pop_back();
    t_.Done(t_.map_->CopyIn(range, chunks, member.slot, size, stream_));
    EXPECT_TRUE(t_.Read(member.buffer) == member.bytes);
    member.resident = true;
  }

  MapDriverContract& t_;
  std::mt19937 random_{42};
  std::vector<Member> members_;
  std::vector<std::vector<ChunkHandle>> free_;
  StreamHandle stream_;
};

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_MAP_DRIVER_FIXTURE_H_
