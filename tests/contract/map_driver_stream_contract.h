// What every MapDriver must do: streams, concurrent readers, other processes.
// Include after map_driver_contract.h, into the same program.
#ifndef METS_TESTS_CONTRACT_MAP_DRIVER_STREAM_CONTRACT_H_
#define METS_TESTS_CONTRACT_MAP_DRIVER_STREAM_CONTRACT_H_

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/map_driver_fixture.h"

namespace mets {

TEST_P(MapDriverContract, WorkOnAStreamRunsInOrder) {
  const StreamHandle stream = *map_->CreateStream();
  const Buffer b = MakeBuffer({large_});
  const std::string bytes = Fill(b, 20);
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  const std::vector<ExtentPiece> other = MakeSlot(b.size);
  ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
  // The second copy reads what the first has written.
  absl::StatusOr<Fence> out =
      map_->CopyOut(b.range, b.chunks, slot, b.size, stream);
  const Buffer c = MakeBuffer({large_});
  absl::StatusOr<Fence> in =
      map_->CopyIn(c.range, c.chunks, slot, c.size, stream);
  Done(in);
  ASSERT_TRUE(out.ok());
  EXPECT_TRUE(*map_->Poll(*out)) << "earlier work has passed";
  EXPECT_EQ(Read(c), bytes);
  ASSERT_TRUE(map_->Unmap(c.range, c.chunks).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  map_->DestroyStream(stream);
}

TEST_P(MapDriverContract, StreamWaitsForAnotherStreamsFence) {
  const StreamHandle first = *map_->CreateStream();
  const StreamHandle second = *map_->CreateStream();
  const Buffer b = MakeBuffer({large_, large_});
  const std::string bytes = Fill(b, 21);
  const Buffer c = MakeBuffer({large_, large_});
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
  absl::StatusOr<Fence> out =
      map_->CopyOut(b.range, b.chunks, slot, b.size, first);
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(map_->StreamWait(second, *out).ok());
  Done(map_->CopyIn(c.range, c.chunks, slot, c.size, second));
  EXPECT_EQ(Read(c), bytes);
  ASSERT_TRUE(map_->Unmap(c.range, c.chunks).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  map_->DestroyStream(second);
  map_->DestroyStream(first);
}

TEST_P(MapDriverContract, RecordedFencePassesWithTheWorkBeforeIt) {
  const StreamHandle stream = *map_->CreateStream();
  EXPECT_TRUE(*map_->IsIdle(StreamHandle::kHostOrder));
  EXPECT_TRUE(*map_->IsIdle(stream));
  absl::StatusOr<Fence> idle = map_->Record(stream);
  Done(idle);
  const Buffer b = MakeBuffer({large_});
  const std::string bytes = Fill(b, 22);
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  absl::StatusOr<Fence> copy =
      map_->CopyOut(b.range, b.chunks, slot, b.size, stream);
  absl::StatusOr<Fence> fence = map_->Record(stream);
  Done(fence);
  ASSERT_TRUE(copy.ok());
  EXPECT_TRUE(*map_->Poll(*copy));
  EXPECT_TRUE(*map_->Poll(*fence));
  EXPECT_TRUE(*map_->IsIdle(stream));
  EXPECT_TRUE(*map_->Poll(Fence::kPassed));
  EXPECT_TRUE(map_->Wait(Fence::kPassed).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  map_->DestroyStream(stream);
  EXPECT_TRUE(*map_->Poll(*fence)) << "fences outlive their stream";
  EXPECT_TRUE(map_->Wait(*fence).ok());
}

TEST_P(MapDriverContract, StreamsCanBeMadeAgainAndAgain) {
  absl::StatusOr<Fence> old;
  for (int i = 0; i < 20; ++i) {
    const StreamHandle stream = *map_->CreateStream();
    if (i > 0) {
      EXPECT_TRUE(*map_->Poll(*old));
    }
    old = map_->Record(stream);
    Done(old);
    map_->DestroyStream(stream);
  }
}

TEST_P(MapDriverContract, UnknownStreamsAreRefused) {
  const StreamHandle stream = *map_->CreateStream();
  map_->DestroyStream(stream);
  EXPECT_FALSE(map_->Record(stream).ok());
  EXPECT_FALSE(map_->IsIdle(stream).ok());
  EXPECT_FALSE(map_->Record(StreamHandle{999}).ok());
  EXPECT_FALSE(map_->StreamWait(StreamHandle{999}, Fence::kPassed).ok());
}

TEST_P(MapDriverContract, AccessMayReturnWhileACopyIsUnderWay) {
  const StreamHandle stream = *map_->CreateStream();
  const Buffer b = MakeBuffer({large_, large_});
  const std::string bytes = Fill(b, 23);
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
    absl::StatusOr<Fence> out =
        map_->CopyOut(b.range, b.chunks, slot, b.size, stream);
    ASSERT_TRUE(map_->AllowAccess(b.range, b.chunks).ok());
    EXPECT_EQ(GetParam().read(b.range, 1), bytes.substr(0, 1));
    Done(out);
  }
  EXPECT_EQ(Read(b), bytes);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  map_->DestroyStream(stream);
}

// What another thread can read of a range is there completely.
TEST_P(MapDriverContract, NoReaderSeesHalfARestoredBuffer) {
  if (!GetParam().is_host) GTEST_SKIP() << "not memory of the process";
  const StreamHandle stream = *map_->CreateStream();
  const Buffer b = MakeBuffer({large_, large_, small_});
  const std::string bytes = Fill(b, 24);
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  Evict(b, slot);
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  (void)Overwrite(b, 25);  // The chunks hold something else meanwhile.
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::thread reader([&] {
    // Faults are errors of the call here. The last bytes come last.
    char seen[64];
    const size_t places[] = {0, bytes.size() / 2, bytes.size() - 64};
    while (!stop) {
      for (size_t at : places) {
        const iovec local = {seen, sizeof(seen)};
        const iovec remote = {b.range + at, sizeof(seen)};
        const ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (n > 0 && bytes.compare(at, n, seen, n) != 0) ++wrong;
      }
    }
  });
  for (int i = 0; i < 20; ++i) {
    Done(map_->CopyIn(b.range, b.chunks, slot, b.size, stream));
    EXPECT_TRUE(IsReadable(b.range));
    ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  map_->DestroyStream(stream);
}

TEST_P(MapDriverContract, ForkedChildHasNoMappings) {
  if (!GetParam().is_host) GTEST_SKIP() << "not memory of the process";
  const Buffer mapped = MakeBuffer({large_, small_});
  (void)Fill(mapped, 26);
  const Buffer restored = MakeBuffer({large_});
  const std::vector<ExtentPiece> slot = MakeSlot(restored.size);
  Done(map_->CopyIn(restored.range, restored.chunks, slot, restored.size,
                    StreamHandle::kHostOrder));
  const Buffer allowed = MakeBuffer({large_});
  (void)Fill(allowed, 27);
  ASSERT_TRUE(map_->BlockAccess(allowed.range, allowed.chunks).ok());
  ASSERT_TRUE(map_->AllowAccess(allowed.range, allowed.chunks).ok());
  const Buffer* const all[] = {&mapped, &restored, &allowed};
  const pid_t child = fork();
  if (child == 0) {
    int visible = 0;
    for (const Buffer* b : all) {
      if (IsReadable(b->range)) ++visible;
      if (IsReadable(b->range + b->size.count() - 1)) ++visible;
    }
    _exit(visible);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "places that the child can read";
  for (const Buffer* b : all) {
    EXPECT_TRUE(IsWritable(b->range));
    ASSERT_TRUE(map_->Unmap(b->range, b->chunks).ok());
  }
}

TEST_P(MapDriverContract, TwoClientsHandAChunkOver) {
  std::unique_ptr<MapDriver> other = GetParam().make_map();
  absl::StatusOr<UniqueFd> fd = pool_->CreateChunk(large_);
  ASSERT_TRUE(fd.ok());
  const std::string bytes = Pattern(large_.count(), 28);
  MapDriver* const drivers[] = {map_.get(), other.get()};
  for (MapDriver* driver : drivers) {
    const ChunkHandle chunk =
        *driver->ImportChunk(UniqueFd(dup(fd->get())), large_);
    char* range = *driver->ReserveRange(large_);
    ASSERT_TRUE(driver->Map(range, {chunk}).ok());
    if (driver == map_.get()) {
      GetParam().write(range, bytes);
    } else {
      EXPECT_EQ(GetParam().read(range, large_.count()), bytes);
    }
    ASSERT_TRUE(driver->Unmap(range, {chunk}).ok());
    driver->ForgetChunk(chunk);
    driver->ReleaseRange(range, large_);
  }
  EXPECT_TRUE(pool_->ReleaseChunk(*std::move(fd)).ok());
}

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_MAP_DRIVER_STREAM_CONTRACT_H_
