#include "common/device/cuda/cuda_map_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_pool_driver.h"
#include "tests/common/device/cuda/fake_cuda.h"
#include "tests/contract/backends.h"

namespace mets {
namespace {

// What every MapDriver does is in the contract suites.
class CudaMapDriverTest : public ::testing::Test {
 protected:
  CudaMapDriverTest()
      : device_(CudaDevices(fake_cuda::Api())->front()),
        pool_(fake_cuda::Api(), device_, Options()) {
    fake_cuda::Reset();
    map_ = *CudaMapDriver::Create(fake_cuda::Api(), device_, {});
    extent_ = *map_->RegisterExtent(*pool_.CreateExtent(kSize), kSize);
    slot_ = {{extent_, Bytes(), kSize}};
    range_ = *map_->ReserveRange(kSize);
    for (Bytes size : {MiB(8), MiB(2), MiB(2)}) {
      UniqueFd fd = *pool_.CreateChunk(size);
      chunks_.push_back(*map_->ImportChunk(UniqueFd(dup(fd.get())), size));
      METS_CHECK_OK(pool_.ReleaseChunk(std::move(fd)));
    }
  }
  void TearDown() override {
    map_.reset();
    EXPECT_EQ(fake_cuda::Left(), "");
    fake_cuda::Reset();
  }
  static CudaPoolOptions Options() {
    CudaPoolOptions options;
    options.total = GiB(1);
    return options;
  }
  // Mapped, with known bytes; and the same in the slot.
  std::string FillAndSave() {
    METS_CHECK_OK(map_->Map(range_, chunks_));
    std::string bytes = Pattern(kSize.count(), 1);
    memcpy(range_, bytes.data(), bytes.size());
    METS_CHECK_OK(
        map_->CopyOut(range_, chunks_, slot_, kSize, StreamHandle::kHostOrder));
    return bytes;
  }
  bool IsUnmapped() {
    const bool free = map_->Map(range_, chunks_).ok();
    if (free) METS_CHECK_OK(map_->Unmap(range_, chunks_));
    return free;
  }

  static constexpr Bytes kSize = MiB(12);
  const CudaDevice device_;
  CudaPoolDriver pool_;
  std::unique_ptr<CudaMapDriver> map_;
  ExtentHandle extent_;
  std::vector<ExtentPiece> slot_;
  char* range_;
  std::vector<ChunkHandle> chunks_;
};

TEST_F(CudaMapDriverTest, BufferIsMadeAccessibleAndUnmappedByOneCallEach) {
  const int access = fake_cuda::Calls("cuMemSetAccess");
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemSetAccess"), access + 1);
  // Other chunks need the range.
  std::swap(chunks_[1], chunks_[2]);
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemSetAccess"), access + 2);
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap + 1);
}

TEST_F(CudaMapDriverTest, TheSameChunksAreMappedInARangeOnce) {
  const std::string bytes = FillAndSave();
  const int map = fake_cuda::Calls("cuMemMap");
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
    // Others use them meanwhile.
    char* other = *map_->ReserveRangeFor(chunks_, kSize);
    ASSERT_TRUE(map_->Map(other, chunks_).ok());
    memset(other, i, kSize.count());
    ASSERT_TRUE(map_->UnmapAfter({}, other, chunks_).ok());
    METS_CHECK_OK(map_->CopyIn(range_, chunks_, slot_, kSize,
                               StreamHandle::kHostOrder));
    EXPECT_TRUE(std::string(range_, kSize.count()) == bytes);
  }
  EXPECT_EQ(fake_cuda::Calls("cuMemMap") - map, 3) << "in the other range";
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap);
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  map_->ForgetChunk(chunks_.back());
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap + 2);
  chunks_.pop_back();
}

TEST_F(CudaMapDriverTest, ARangeThatWasReadOnlyIsMappedAnew) {
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  ASSERT_TRUE(map_->SetReadOnly(range_, chunks_, true).ok());
  const int map = fake_cuda::Calls("cuMemMap");
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap + 1);
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemMap"), map + 3);
}

TEST_F(CudaMapDriverTest, WhatIsKeptGivesItsAddressesToOthers) {
  const auto map =
      *CudaMapDriver::Create(fake_cuda::Api(), device_, {MiB(64)});
  UniqueFd fd = *pool_.CreateChunk(MiB(8));
  const std::vector<ChunkHandle> chunks = {
      *map->ImportChunk(UniqueFd(dup(fd.get())), MiB(8))};
  METS_CHECK_OK(pool_.ReleaseChunk(std::move(fd)));
  for (int i = 0; i < 20; ++i) {
    const absl::StatusOr<char*> range = map->ReserveRange(MiB(8));
    ASSERT_TRUE(range.ok()) << i << ": " << range.status();
    ASSERT_TRUE(map->Map(*range, chunks).ok());
    ASSERT_TRUE(map->UnmapAfter({}, *range, chunks).ok());
  }
}

// A stream of the program, on which there is work until Release.
class BusyStream {
 public:
  BusyStream(MapDriver& map, const CudaDevice& device)
      : map_(map),
        context_(*CudaContext::Retain(fake_cuda::Api(), device)),
        scope_(*context_) {
    METS_CHECK_OK(
        fake_cuda::Api().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    fake_cuda::Occupy(stream_);
    handle_ = *map_.AdoptStream(stream_);
  }
  ~BusyStream() {
    map_.DestroyStream(handle_);
    METS_CHECK_OK(fake_cuda::Api().cuStreamDestroy(stream_));
  }
  // Passes once the work has.
  Fence Record() { return *map_.Record(handle_); }
  void Release() { fake_cuda::Release(stream_); }

 private:
  MapDriver& map_;
  const std::unique_ptr<CudaContext> context_;
  const CudaContext::Scope scope_;
  CUstream stream_;
  StreamHandle handle_;
};

TEST_F(CudaMapDriverTest, ARangeStaysMappedUntilTheWorkOnItHasPassed) {
  BusyStream busy(*map_, device_);
  char* other = *map_->ReserveRange(kSize);
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  const Fence fence = busy.Record();
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  ASSERT_TRUE(map_->UnmapAfter({fence}, range_, chunks_).ok());
  ASSERT_TRUE(map_->Map(other, chunks_).ok());
  memset(other, 7, kSize.count());
  EXPECT_EQ(range_[0], 7) << "they are the same chunks";
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap);
  busy.Release();
  ASSERT_TRUE(map_->UnmapAfter({}, other, chunks_).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap) << "both are kept";
  range_ = *map_->ReserveRangeFor(chunks_, kSize);
  EXPECT_EQ(range_[0], 7);
}

TEST_F(CudaMapDriverTest, AForgottenChunkIsInNoRangeThatIsStillToBeUnmapped) {
  BusyStream busy(*map_, device_);
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  const Fence fence = busy.Record();
  ASSERT_TRUE(map_->UnmapAfter({fence}, range_, chunks_).ok());
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  std::thread releaser([&] {
    absl::SleepFor(absl::Milliseconds(20));
    busy.Release();
  });
  map_->ForgetChunk(chunks_.back());
  chunks_.pop_back();
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap + 1);
  releaser.join();
}

// Whoever forgets a chunk may have to wait for work on another range with it.
TEST_F(CudaMapDriverTest, ARangeIsFreeForOthersWhileOneOfItsChunksIsForgotten) {
  BusyStream busy(*map_, device_);
  char* other = *map_->ReserveRange(kSize);
  ASSERT_TRUE(map_->Map(other, chunks_).ok());
  ASSERT_TRUE(map_->UnmapAfter({busy.Record()}, other, chunks_).ok());
  ASSERT_TRUE(map_->Map(range_, chunks_).ok());
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  const int unmap = fake_cuda::Calls("cuMemUnmap");
  const ChunkHandle forgotten = chunks_.back();
  chunks_.pop_back();
  std::thread forgets([&] { map_->ForgetChunk(forgotten); });
  const absl::Time deadline = absl::Now() + absl::Seconds(2);
  while (fake_cuda::Calls("cuMemUnmap") == unmap && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(map_->Map(range_, chunks_).ok());
  busy.Release();
  forgets.join();
  EXPECT_EQ(fake_cuda::Calls("cuMemUnmap"), unmap + 2);
}

// Threads with a range each share chunks; what they map is what they have
// written, and a chunk that nobody has is forgotten and imported again.
TEST_F(CudaMapDriverTest, RangesOfSeveralThreadsKeepMappingsOfTheSameChunks) {
  constexpr int kThreads = 3, kChunks = 8, kRounds = 150;
  const Bytes size = MiB(4);  // Two chunks.
  std::vector<UniqueFd> fds;
  std::mutex mutex;
  std::vector<int> free;
  std::vector<ChunkHandle> handles;
  const auto import = [&](int i) {
    return *map_->ImportChunk(UniqueFd(dup(fds[i].get())), MiB(2));
  };
  for (int i = 0; i < kChunks; ++i) {
    fds.push_back(*pool_.CreateChunk(MiB(2)));
    handles.push_back(import(i));
    free.push_back(i);
  }
  std::atomic<bool> done = false;
  const auto run = [&](int seed) {
    std::mt19937 random(seed);
    const StreamHandle stream = *map_->CreateStream();
    char* mine = *map_->ReserveRange(size);
    for (int round = 0; round < kRounds; ++round) {
      int a, b;
      {
        std::lock_guard<std::mutex> lock(mutex);
        std::shuffle(free.begin(), free.end(), random);
        a = free.back();
        free.pop_back();
        b = free.back();
        free.pop_back();
      }
      const std::vector<ChunkHandle> chunks = {handles[a], handles[b]};
      const bool fresh = random() % 2 == 0;
      char* range = fresh ? *map_->ReserveRangeFor(chunks, size) : mine;
      const absl::Status mapped = map_->Map(range, chunks);
      EXPECT_TRUE(mapped.ok()) << mapped;
      if (!mapped.ok()) return;
      memset(range, round, size.count());
      EXPECT_EQ(range[size.count() - 1], static_cast<char>(round));
      EXPECT_EQ(range[0], static_cast<char>(round));
      if (fresh) {
        METS_CHECK_OK(map_->UnmapAfter({*map_->Record(stream)}, range, chunks));
      } else {
        METS_CHECK_OK(map_->Unmap(range, chunks));
      }
      std::lock_guard<std::mutex> lock(mutex);
      free.push_back(a);
      free.push_back(b);
    }
    map_->DestroyStream(stream);
  };
  std::thread forgetter([&] {
    while (!done) {
      int i;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (free.empty()) continue;
        i = free.front();
        free.erase(free.begin());
      }
      map_->ForgetChunk(handles[i]);
      handles[i] = import(i);
      std::lock_guard<std::mutex> lock(mutex);
      free.push_back(i);
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  done = true;
  forgetter.join();
  for (UniqueFd& fd : fds) METS_CHECK_OK(pool_.ReleaseChunk(std::move(fd)));
}

TEST_F(CudaMapDriverTest, MappingThatFailsHalfwayIsUndone) {
  fake_cuda::Fail("cuMemMap", CUDA_ERROR_INVALID_VALUE, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(map_->Map(range_, chunks_)));
  EXPECT_TRUE(IsUnmapped());
  std::swap(chunks_[1], chunks_[2]);  // What IsUnmapped has mapped is kept.
  fake_cuda::Fail("cuMemSetAccess", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(map_->Map(range_, chunks_)));
  EXPECT_TRUE(IsUnmapped());
}

TEST_F(CudaMapDriverTest, CopyInThatCannotBeginLeavesNothingMapped) {
  FillAndSave();
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  for (StreamHandle stream :
       {StreamHandle::kHostOrder, *map_->CreateStream()}) {
    for (const char* call : {"cuMemcpyHtoDAsync", "cuEventRecord"}) {
      fake_cuda::Fail(call, CUDA_ERROR_INVALID_VALUE);
      EXPECT_FALSE(map_->CopyIn(range_, chunks_, slot_, kSize, stream).ok());
      EXPECT_TRUE(IsUnmapped()) << call;
    }
  }
  EXPECT_FALSE(
      map_->CopyIn(range_, chunks_, slot_, kSize, StreamHandle{99}).ok());
  EXPECT_TRUE(IsUnmapped());
}

TEST_F(CudaMapDriverTest, CopyInThatFailsLaterIsUnmappedWhenItsFenceIsSeen) {
  FillAndSave();
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  const StreamHandle stream = *map_->CreateStream();
  fake_cuda::Delay();
  fake_cuda::FailNextCopy(CUDA_ERROR_ECC_UNCORRECTABLE);
  absl::StatusOr<Fence> fence =
      map_->CopyIn(range_, chunks_, slot_, kSize, stream);
  ASSERT_TRUE(fence.ok()) << fence.status();
  EXPECT_FALSE(IsUnmapped());
  fake_cuda::Run();
  EXPECT_TRUE(absl::IsInternal(map_->Wait(*fence)));
  EXPECT_TRUE(absl::IsInternal(map_->Poll(*fence).status())) << "it stays";
  fake_cuda::Reset();
  EXPECT_TRUE(IsUnmapped());
}

TEST_F(CudaMapDriverTest, FailedCopyInHostOrderIsTheCallsError) {
  FillAndSave();
  fake_cuda::FailNextCopy(CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_TRUE(absl::IsInternal(
      map_->CopyOut(range_, chunks_, slot_, kSize, StreamHandle::kHostOrder)
          .status()));
  fake_cuda::Reset();
  EXPECT_FALSE(IsUnmapped()) << "a copy out leaves the buffer";
}

TEST_F(CudaMapDriverTest, CallsReturnBeforeTheDeviceHasCopied) {
  const std::string bytes = FillAndSave();
  const StreamHandle stream = *map_->CreateStream();
  ASSERT_TRUE(map_->Unmap(range_, chunks_).ok());
  fake_cuda::Delay();
  const int waits = fake_cuda::Calls("cuStreamSynchronize");
  absl::StatusOr<Fence> in =
      map_->CopyIn(range_, chunks_, slot_, kSize, stream);
  absl::StatusOr<Fence> out =
      map_->CopyOut(range_, chunks_, slot_, kSize, stream);
  ASSERT_TRUE(in.ok() && out.ok());
  EXPECT_FALSE(*map_->Poll(*in));
  EXPECT_EQ(waits, fake_cuda::Calls("cuStreamSynchronize"));
  fake_cuda::Run(1);
  EXPECT_TRUE(map_->Wait(*in).ok());
  EXPECT_TRUE(*map_->Poll(*in));
  EXPECT_FALSE(*map_->Poll(*out)) << "only what is before the fence";
  EXPECT_EQ(std::string(range_, kSize.count()), bytes);
  fake_cuda::Run();
  EXPECT_TRUE(map_->Wait(*out).ok());
}

TEST_F(CudaMapDriverTest, TimeBetweenMarksIsThatOfTheWork) {
  FillAndSave();
  const StreamHandle stream = *map_->CreateStream();
  const TimeMark from = map_->MarkTime(stream);
  for (int i = 0; i < 3; ++i) {  // A fake's copy takes 1 ms.
    METS_CHECK_OK(map_->CopyOut(range_, chunks_, slot_, kSize, stream));
  }
  const TimeMark to = map_->MarkTime(stream);
  EXPECT_EQ(*map_->TimeBetween(from, to), absl::Milliseconds(3));
  EXPECT_EQ(map_->MarkTime(StreamHandle{99}), nullptr);
}

TEST_F(CudaMapDriverTest, DestroyedDriverUnmapsWhatIsMapped) {
  FillAndSave();  // TearDown looks.
}

TEST_F(CudaMapDriverTest, FullDeviceMakesNoDriver) {
  fake_cuda::Fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(
      CudaMapDriver::Create(fake_cuda::Api(), device_, {}).status()));
}

TEST_F(CudaMapDriverTest, SmallerRegionIsTakenWhereAddressesAreScarce) {
  for (int nth : {1, 2, 3}) {
    fake_cuda::Fail("cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY, nth);
  }
  const auto map = CudaMapDriver::Create(fake_cuda::Api(), device_, {});
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(Bytes((*map)->region_end() - (*map)->region_begin()), GiB(128));
}

}  // namespace
}  // namespace mets
