// What the status says that sharing costs.
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

int64_t Failures(const JobStatus& job, Failure failure) {
  return job.failures[static_cast<size_t>(failure)];
}

class CostsTest : public ::testing::Test {
 protected:
  // `count` steps of `ms` each have ended, of which it waited `wait_ms` each.
  void TellSteps(FakeSession& session, int count, int ms, int wait_ms) {
    session.totals.steps += count;
    session.totals.step_time += absl::Milliseconds(ms) * count;
    session.totals.step_wait += absl::Milliseconds(wait_ms) * count;
    cluster_.Report(session);
    cluster_.Pump();
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(256))};
};

TEST_F(CostsTest, AHandOverIsCountedWithItsTime) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(16));
  a.silent = true;
  cluster_.Pump();
  cluster_.Advance(absl::Milliseconds(30));
  EXPECT_GE(cluster_.device().handover_time, absl::Milliseconds(20));
  EXPECT_EQ(cluster_.device().handover, Bytes());
  a.silent = false;
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().handover, MiB(64));
  const absl::Duration time = cluster_.device().handover_time;
  EXPECT_LE(time, absl::Milliseconds(31));
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster_.device().handover_time, time);
}

TEST_F(CostsTest, CopiesCountByDirectionAlsoWhenTheJobIsGone) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(1));
  a.totals.evicted = MiB(30);
  a.totals.restored = MiB(20);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Kill(a);
  cluster_.Advance(absl::Minutes(5));
  EXPECT_TRUE(cluster_.core().GetStatus().jobs.empty());
  EXPECT_EQ(cluster_.device().copied_out_bytes, MiB(30).count());
  EXPECT_EQ(cluster_.device().copied_in_bytes, MiB(20).count());
}

// The earlier metsd has counted what was copied under it.
TEST_F(CostsTest, ADeviceCountsSinceItsDaemonStarted) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(1));
  a.totals.evicted = MiB(30);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.RestartCore(FakeCluster::Config(MiB(64), MiB(256)));
  cluster_.Return(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").totals.evicted, MiB(30));
  EXPECT_EQ(cluster_.device().copied_out_bytes, 0);
  a.totals.evicted = MiB(34);
  cluster_.Report(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().copied_out_bytes, MiB(4).count());
}

TEST_F(CostsTest, AJobIsComparedWithItsStepsAlone) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(8));
  cluster_.Pump();
  for (int i = 0; i < 5; ++i) TellSteps(a, 10, 100, 0);
  EXPECT_DOUBLE_EQ(cluster_.job("a").slowdown, 1);
  FakeSession& b = cluster_.Open("b");
  const BufferId other = cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  for (int i = 0; i < 120; ++i) {
    cluster_.Touch(b, other, true);
    cluster_.Report(b);
    cluster_.Advance(absl::Milliseconds(100));
    if (i % 10 == 9) TellSteps(a, 4, 250, 50);
  }
  const JobStatus job = cluster_.job("a");
  EXPECT_EQ(job.uncontended_step, absl::Milliseconds(100));
  EXPECT_EQ(job.recent_step, absl::Milliseconds(250));
  EXPECT_DOUBLE_EQ(job.slowdown, 2.5);
  EXPECT_EQ(job.totals.steps, 98);
}

TEST_F(CostsTest, FailuresAreCountedByReason) {
  FakeSession& a = cluster_.Open("a", {1, MiB(32)});
  cluster_.Alloc(a, MiB(100));
  cluster_.Alloc(a, MiB(40));
  cluster_.Pump();
  cluster_.AllocPinned(a, MiB(32));
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(b, MiB(48), absl::Seconds(2));
  cluster_.Alloc(b, MiB(64), absl::ZeroDuration());  // Only if it is free.
  cluster_.Advance(absl::Seconds(3));
  EXPECT_EQ(Failures(cluster_.job("a"), Failure::kPool), 1);
  EXPECT_EQ(Failures(cluster_.job("a"), Failure::kLimit), 1);
  const JobStatus job = cluster_.job("b");
  EXPECT_EQ(Failures(job, Failure::kPinned), 1);
  for (Failure none : {Failure::kTimeout, Failure::kPool, Failure::kCopy}) {
    EXPECT_EQ(Failures(job, none), 0);
  }
}

TEST_F(CostsTest, ACopyThatFailsIsAFailureOfItsJob) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Report(a);
  a.fails = true;
  cluster_.Alloc(b, MiB(16), absl::Seconds(1));
  cluster_.Advance(absl::Milliseconds(500));
  EXPECT_GE(Failures(cluster_.job("a"), Failure::kCopy), 1);
}

TEST_F(CostsTest, AWaitThatGoesOnIsSeen) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId pinned = cluster_.AllocPinned(a, MiB(64));
  cluster_.Alloc(b, MiB(16), absl::Seconds(30));
  cluster_.Advance(absl::Seconds(20));
  EXPECT_NEAR(absl::ToDoubleSeconds(cluster_.job("b").waiting_for), 20, 0.1);
  EXPECT_EQ(cluster_.job("a").waiting_for, absl::ZeroDuration());
  EXPECT_EQ(cluster_.job("b").wait_times.count(), 0);
  cluster_.Pin(a, pinned, false);
  cluster_.Report(a);
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster_.job("b").waiting_for, absl::ZeroDuration());
  EXPECT_EQ(cluster_.job("b").wait_times.count(), 1);
}

TEST_F(CostsTest, SessionsAreCountedByState) {
  cluster_.Open("a");
  FakeSession& lost = cluster_.Open("b");
  FakeSession& rogue = cluster_.Open("c");
  cluster_.Lose(lost);
  Release strange;
  strange.session = rogue.id;
  strange.chunks = {ChunkId(999)};
  cluster_.Send(rogue, strange);
  cluster_.Pump();
  const SessionCounts counts = cluster_.core().GetStatus().session_counts;
  EXPECT_EQ(counts.connected, 1);
  EXPECT_EQ(counts.returning, 1);
  EXPECT_EQ(counts.refused, 1);
  EXPECT_EQ(counts.unresponsive, 0);
  EXPECT_EQ(Failures(cluster_.job("c"), Failure::kProtocol), 1);
}

}  // namespace
}  // namespace mets::core
