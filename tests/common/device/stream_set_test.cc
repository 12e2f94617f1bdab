#include "common/device/host/stream_set.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <vector>

#include "absl/synchronization/notification.h"

namespace mets {
namespace {

absl::Status Fail() { return absl::DataLossError("torn"); }
absl::Status Succeed() { return absl::OkStatus(); }

TEST(StreamSet, TasksRunInOrderOnTheirStream) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  std::vector<int> order;
  Fence last = Fence::kPassed;
  for (int i = 0; i < 100; ++i) {
    last = *streams.Submit(stream, [&order, i] {
      order.push_back(i);
      return absl::OkStatus();
    });
  }
  ASSERT_TRUE(streams.Wait(last).ok());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(StreamSet, ErrorBelongsToItsFence) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  const Fence good = *streams.Submit(stream, Succeed);
  const Fence bad = *streams.Submit(stream, Fail);
  const Fence after = *streams.Submit(stream, Succeed);
  EXPECT_TRUE(streams.Wait(after).ok());
  EXPECT_TRUE(absl::IsDataLoss(streams.Wait(bad)));
  EXPECT_TRUE(absl::IsDataLoss(streams.Poll(bad).status()));
  EXPECT_TRUE(streams.Wait(good).ok());
}

TEST(StreamSet, RecordReportsTheFirstErrorSinceTheLastRecord) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  ASSERT_TRUE(streams.Submit(stream, Fail).ok());
  ASSERT_TRUE(streams.Submit(stream, Succeed).ok());
  const Fence first = *streams.Record(stream);
  const Fence second = *streams.Record(stream);
  EXPECT_TRUE(absl::IsDataLoss(streams.Wait(first)));
  EXPECT_TRUE(streams.Wait(second).ok());
}

TEST(StreamSet, FencePassesOnlyWithItsTask) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  absl::Notification go;
  const Fence fence = *streams.Submit(stream, [&go] {
    go.WaitForNotification();
    return absl::OkStatus();
  });
  EXPECT_FALSE(*streams.Poll(fence));
  go.Notify();
  EXPECT_TRUE(streams.Wait(fence).ok());
  EXPECT_TRUE(*streams.Poll(fence));
}

TEST(StreamSet, StreamWaitOrdersTwoStreams) {
  StreamSet streams;
  const StreamHandle first = *streams.Create();
  const StreamHandle second = *streams.Create();
  absl::Notification go;
  std::atomic<bool> first_done = false;
  bool seen = false;
  const Fence fence = *streams.Submit(first, [&] {
    go.WaitForNotification();
    first_done = true;
    return Fail();
  });
  ASSERT_TRUE(streams.StreamWait(second, fence).ok());
  const Fence after = *streams.Submit(second, [&] {
    seen = first_done;
    return absl::OkStatus();
  });
  EXPECT_FALSE(*streams.Poll(after));
  go.Notify();
  EXPECT_TRUE(streams.Wait(after).ok())
      << "the other stream's error is its own";
  EXPECT_TRUE(seen);
}

TEST(StreamSet, HostOrderRunsAtOnceAndReturnsErrors) {
  StreamSet streams;
  bool ran = false;
  absl::StatusOr<Fence> fence =
      streams.Submit(StreamHandle::kHostOrder, [&ran] {
        ran = true;
        return absl::OkStatus();
      });
  ASSERT_TRUE(fence.ok());
  EXPECT_EQ(*fence, Fence::kPassed);
  EXPECT_TRUE(ran);
  EXPECT_TRUE(absl::IsDataLoss(
      streams.Submit(StreamHandle::kHostOrder, Fail).status()));
}

TEST(StreamSet, HostOrderWaitsForAFence) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  std::atomic<int> done = 0;
  Fence last = Fence::kPassed;
  for (int i = 0; i < 1000; ++i) {
    last = *streams.Submit(stream, [&done] {
      ++done;
      return absl::OkStatus();
    });
  }
  ASSERT_TRUE(streams.StreamWait(StreamHandle::kHostOrder, last).ok());
  EXPECT_EQ(done, 1000);
}

TEST(StreamSet, FencesOfDestroyedStreamsHavePassed) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  const Fence old = *streams.Submit(stream, Succeed);
  streams.Destroy(stream);
  EXPECT_TRUE(*streams.Poll(old));
  const StreamHandle again = *streams.Create();
  absl::Notification go;
  const Fence fresh = *streams.Submit(again, [&go] {
    go.WaitForNotification();
    return absl::OkStatus();
  });
  EXPECT_NE(fresh, old);
  EXPECT_TRUE(*streams.Poll(old));
  EXPECT_FALSE(*streams.Poll(fresh));
  go.Notify();
  streams.Destroy(again);
}

TEST(StreamSet, UnknownFencesAreRefused) {
  StreamSet streams;
  EXPECT_TRUE(absl::IsInvalidArgument(streams.Wait(Fence{17})));
  const StreamHandle stream = *streams.Create();
  const Fence fence = *streams.Record(stream);
  const Fence later{static_cast<uint64_t>(fence) + 5};
  EXPECT_TRUE(absl::IsInvalidArgument(streams.Wait(later)));
  EXPECT_TRUE(absl::IsInvalidArgument(streams.Poll(later).status()));
}

TEST(StreamSet, StreamsLeaveSignalsToTheProgram) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  bool term = false;
  bool fault = true;
  const Fence fence = *streams.Submit(stream, [&] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    term = sigismember(&blocked, SIGTERM);
    fault = sigismember(&blocked, SIGSEGV);
    return absl::OkStatus();
  });
  ASSERT_TRUE(streams.Wait(fence).ok());
  EXPECT_TRUE(term);
  EXPECT_FALSE(fault);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_FALSE(sigismember(&own, SIGTERM));
}

TEST(StreamSet, OldErrorsAreForgottenNotKeptForever) {
  StreamSet streams;
  const StreamHandle stream = *streams.Create();
  const Fence oldest = *streams.Submit(stream, Fail);
  Fence newest = Fence::kPassed;
  for (int i = 0; i < 2000; ++i) newest = *streams.Submit(stream, Fail);
  EXPECT_FALSE(streams.Wait(newest).ok());
  EXPECT_TRUE(streams.Wait(oldest).ok());
}

}  // namespace
}  // namespace mets
