#include <gtest/gtest.h>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

TEST(TurnSchedulerTest, JobsWhoseEphemeralBytesClashComputeStepByStep) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 40));
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(59));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Seconds(a) + Seconds(b), 59.0);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.99);
  EXPECT_EQ(jobs.turns().quanta_total(0), 0);
  EXPECT_GE(jobs.turns().turns_total(0), 580);
}

TEST(TurnSchedulerTest, TwoHalfIdleJobsFillTheDevice) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 950, 30);
  spec.compute = absl::Milliseconds(80);
  spec.input = absl::Milliseconds(120);  // 60 % of the step.
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(60));
  // Alone, each makes five steps a second.
  EXPECT_GE(a.steps, 290);
  EXPECT_GE(b.steps, 290);
}

TEST(TurnSchedulerTest, SeveralSmallJobsHaveTurnsAtOnceWhileTheyFit) {
  FakeJobs jobs(SmallDevice());
  jobs.Add(Spec("a", 440, 20));
  jobs.Add(Spec("b", 440, 20));
  jobs.Add(Spec("c", 440, 20));
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(30));
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
}

TEST(TurnSchedulerTest, ADeadHolderOfATurnBlocksNobody) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 900, 20));
  FakeJobs::Job& b = jobs.Add(Spec("b", 900, 20));
  FakeJobs::Job& c = jobs.Add(Spec("c", 900, 20));
  jobs.Run(absl::Milliseconds(3050));
  jobs.Remove(a.computing ? a : b.computing ? b : c);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(jobs.turns().turns_total(0), 120);
}

TEST(TurnSchedulerTest, ASilentHolderLosesItsTurnAfterTheOrderTimeout) {
  TurnOptions options = SmallDevice();
  options.max_wait = absl::Seconds(2);
  FakeJobs jobs(options);
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  jobs.Run(absl::Seconds(3));
  a.silent = true;
  const int64_t before = b.steps;
  jobs.Run(absl::Seconds(20));
  EXPECT_LE(b.longest_wait, options.max_wait + options.order_timeout);
  EXPECT_GE(b.steps - before, 100);
}

// What it holds does not leave before.
TEST(TurnSchedulerTest, AGatedHolderKeepsItsTurnUntilItsSectionEnds) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 950, 950);
  spec.gated = true;
  spec.known = false;
  spec.compute = absl::Seconds(120);  // Ten sections.
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(30));
  jobs.TakeMostComputing();
  jobs.Run(absl::Minutes(4));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.8);
  a.silent = true;
  const absl::Duration before = b.computed;
  jobs.Run(absl::Minutes(4));
  EXPECT_GE(b.computed - before, absl::Minutes(1));
}

TEST(TurnSchedulerTest, AProcessWhoseStreamComesBackTakesPartAgain) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  jobs.Run(absl::Seconds(5));
  for (int i = 0; i < 10; ++i) {
    jobs.Reconnect(i % 2 == 0 ? a : b);
    jobs.Run(absl::Seconds(2));
  }
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.95);
}

TEST(TurnSchedulerTest, GarbageChangesNothing) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  jobs.Add(Spec("b", 950, 30));
  TurnScheduler& turns = jobs.turns();
  turns.OnNeed({SessionId(99), "host0", MiB(1), MiB(1), absl::Seconds(1)});
  turns.OnNeed({a.session, "host0", MiB(-5), MiB(7), absl::Seconds(-1)});
  turns.OnWanted(jobs.now(), {SessionId(99), "host0", OrderId(1)});
  turns.OnWanted(jobs.now(), {a.session, "host0", OrderId(12345)});
  TurnEnded ended;
  ended.session = a.session;
  ended.order = OrderId(77);
  ended.computed = -absl::InfiniteDuration();
  turns.OnEnded(jobs.now(), ended);
  jobs.Run(absl::Seconds(10));
  EXPECT_GE(jobs.turns().turns_total(0), 90);
}

}  // namespace
}  // namespace mets::core
