#include "common/device/cuda/cuda_stream_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"
#include "tests/common/device/cuda/fake_cuda.h"

namespace mets {
namespace {

class CudaStreamSetTest : public ::testing::Test {
 protected:
  CudaStreamSetTest()
      : context_(*CudaContext::Retain(fake_cuda::Api(),
                                      CudaDevices(fake_cuda::Api())->front())),
        scope_(std::make_unique<CudaContext::Scope>(*context_)),
        streams_(std::make_unique<CudaStreamSet>(fake_cuda::Api())) {
    fake_cuda::Reset();
    METS_CHECK_OK(
        fake_cuda::Api().cuStreamCreate(&program_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    fake_cuda::Reset();
    streams_.reset();
    METS_CHECK_OK(fake_cuda::Api().cuStreamDestroy(program_));
    scope_.reset();
    context_.reset();
    EXPECT_EQ(fake_cuda::Left(), "");
  }
  // Work on a stream that is done by Run.
  void Work(CUstream stream) {
    fake_cuda::Delay();
    CUevent event;
    METS_CHECK_OK(fake_cuda::Api().cuEventCreate(&event, 0));
    METS_CHECK_OK(fake_cuda::Api().cuEventRecord(event, program_));
    METS_CHECK_OK(fake_cuda::Api().cuStreamWaitEvent(stream, event, 0));
    METS_CHECK_OK(fake_cuda::Api().cuEventDestroy(event));
  }

  std::unique_ptr<CudaContext> context_;
  std::unique_ptr<CudaContext::Scope> scope_;
  std::unique_ptr<CudaStreamSet> streams_;
  CUstream program_;
};

TEST_F(CudaStreamSetTest, FenceOfAProgramsStreamPassesAfterItsWork) {
  const StreamHandle handle = *streams_->Adopt(program_);
  EXPECT_EQ(*streams_->Adopt(program_), handle) << "the same stream";
  Work(program_);
  const Fence fence = *streams_->Record(handle);
  EXPECT_FALSE(*streams_->Poll(fence));
  fake_cuda::Run();
  EXPECT_TRUE(streams_->Wait(fence).ok());
  EXPECT_TRUE(*streams_->Poll(fence));
}

TEST_F(CudaStreamSetTest, StreamWaitsForAProgramsStream) {
  const StreamHandle handle = *streams_->Adopt(program_);
  const StreamHandle own = *streams_->Create();
  Work(program_);
  const Fence before = *streams_->Record(handle);
  ASSERT_TRUE(streams_->StreamWait(own, before).ok());
  const Fence after = *streams_->Record(own);
  EXPECT_FALSE(*streams_->Poll(after));
  fake_cuda::Run();
  EXPECT_TRUE(streams_->Wait(after).ok());
  EXPECT_TRUE(*streams_->Poll(before));
}

TEST_F(CudaStreamSetTest, ForgottenStreamIsLeftToTheProgram) {
  const StreamHandle handle = *streams_->Adopt(program_);
  const Fence fence = *streams_->Record(handle);
  streams_->Destroy(handle);
  EXPECT_FALSE(streams_->Record(handle).ok());
  EXPECT_TRUE(*streams_->Poll(fence));
  EXPECT_TRUE(streams_->Adopt(program_).ok());
  EXPECT_TRUE(streams_->Record(*streams_->Adopt(program_)).ok());
}

TEST_F(CudaStreamSetTest, AStreamIsIdleWhenItsWorkHasPassed) {
  const StreamHandle handle = *streams_->Adopt(program_);
  EXPECT_TRUE(*streams_->IsIdle(handle));
  fake_cuda::Occupy(program_);
  EXPECT_FALSE(*streams_->IsIdle(handle));
  fake_cuda::Release(program_);
  EXPECT_TRUE(*streams_->IsIdle(handle));
}

TEST_F(CudaStreamSetTest, AStreamThatCapturesIsNotIdleNorAsked) {
  const StreamHandle handle = *streams_->Adopt(program_);
  fake_cuda::Capture(program_, true);
  const int asked = fake_cuda::Calls("cuStreamQuery");
  EXPECT_FALSE(*streams_->IsIdle(handle));
  EXPECT_EQ(fake_cuda::Calls("cuStreamQuery"), asked);
  fake_cuda::Capture(program_, false);
  EXPECT_TRUE(*streams_->IsIdle(handle));
}

TEST_F(CudaStreamSetTest, UndoRunsOnceForEachFenceThatFailed) {
  const StreamHandle handle = *streams_->Create();
  const CUstream stream = *streams_->Find(handle);
  int undone = 0;
  ASSERT_TRUE(
      streams_->Wait(*streams_->Record(handle, [&] { ++undone; })).ok());
  EXPECT_EQ(undone, 0);
  Work(stream);
  const Fence first = *streams_->Record(handle, [&] { ++undone; });
  const Fence second = *streams_->Record(handle, [&] { undone += 10; });
  fake_cuda::Fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(absl::IsInternal(streams_->Wait(second)));
  EXPECT_EQ(undone, 11);
  EXPECT_TRUE(absl::IsInternal(streams_->Wait(first)));
  EXPECT_TRUE(absl::IsInternal(streams_->Poll(second).status()));
  EXPECT_EQ(undone, 11);
}

TEST_F(CudaStreamSetTest, FencesThatNobodyAsksForDoNotPileUp) {
  const StreamHandle handle = *streams_->Create();
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(streams_->Record(handle).ok());
  EXPECT_LE(fake_cuda::Calls("cuEventCreate"), 100);
}

TEST_F(CudaStreamSetTest, StreamThatIsBehindKeepsItsFences) {
  const StreamHandle handle = *streams_->Create();
  Work(*streams_->Find(handle));
  std::vector<Fence> fences;
  for (int i = 0; i < 1000; ++i) fences.push_back(*streams_->Record(handle));
  EXPECT_FALSE(*streams_->Poll(fences.front()));
  EXPECT_FALSE(*streams_->Poll(fences.back()));
  fake_cuda::Run();
  ASSERT_TRUE(streams_->Wait(fences[500]).ok());
  for (Fence fence : fences) EXPECT_TRUE(*streams_->Poll(fence));
}

TEST_F(CudaStreamSetTest, WaitEndsWhenTheWorkIsDone) {
  const StreamHandle handle = *streams_->Create();
  Work(*streams_->Find(handle));
  const Fence fence = *streams_->Record(handle);
  std::atomic<bool> run = false;
  std::thread device([&] {
    while (fake_cuda::Calls("cuEventQuery") < 200) std::this_thread::yield();
    run = true;
    fake_cuda::Run();
  });
  EXPECT_TRUE(streams_->Wait(fence).ok());
  EXPECT_TRUE(run);
  device.join();
}

TEST_F(CudaStreamSetTest, UnknownFencesAreRefused) {
  const StreamHandle handle = *streams_->Create();
  const Fence fence = *streams_->Record(handle);
  const Fence later{static_cast<uint64_t>(fence) + 1};
  EXPECT_TRUE(absl::IsInvalidArgument(streams_->Poll(later).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(streams_->Wait(Fence{12345})));
  EXPECT_FALSE(streams_->StreamWait(handle, later).ok());
}

}  // namespace
}  // namespace mets
