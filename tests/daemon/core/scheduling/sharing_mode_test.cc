#include <gtest/gtest.h>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

// Its needs are not known; two do not fit, and something of each is swapped.
FakeJobs::Job& AddUnknown(FakeJobs* jobs, const char* name) {
  FakeJobSpec spec = Spec(name, 800, 0);
  spec.known = false;
  FakeJobs::Job& job = jobs->Add(spec);
  job.swapped = MiB(300);
  return job;
}

TEST(SharingModeTest, JobsThatFitAreToldNothing) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 500, 100));
  FakeJobs::Job& b = jobs.Add(Spec("b", 500, 100));
  jobs.Run(absl::Seconds(30));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
  EXPECT_EQ(jobs.turns().next_deadline(), absl::InfiniteFuture());
  EXPECT_EQ(a.orders + b.orders, 0);
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
}

TEST(SharingModeTest, AJobNeedsNoMoreThanItsLimit) {
  FakeJobs jobs(SmallDevice());
  jobs.Add(Spec("a", 500, 100));
  FakeJobSpec limited = Spec("b", 800, 100);
  limited.limit = MiB(300);
  limited.priority = -1;
  jobs.Add(limited);
  limited.name = "new";
  limited.limit = MiB(100);
  limited.known = false;
  jobs.Add(limited);
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, ModesFollowTheNeeds) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 600, 100));
  jobs.Add(Spec("b", 600, 300));
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  const auto need = [&](int peak, int persistent) {
    jobs.turns().OnNeed({a.session, "host0", MiB(peak), MiB(persistent),
                         absl::Milliseconds(100)});
    jobs.Run(absl::Seconds(2));
  };
  need(900, 750);  // 750 + 300 + 300.
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  need(600, 395);  // Less than what fits, but not by enough.
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  need(600, 300);
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  need(390, 100);
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  need(300, 100);
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

// Steps that become known while jobs have quanta, because they had thrashed.
TEST(SharingModeTest, TurnsThatJustFitComeAfterQuantaThatOthersHadNotOutgrown) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = AddUnknown(&jobs, "a");
  FakeJobs::Job& b = AddUnknown(&jobs, "b");
  for (int i = 0; i < 10; ++i) {
    jobs.moved["a"] += MiB(1000);
    jobs.moved["b"] += MiB(1000);
    jobs.Run(absl::Milliseconds(500));
  }
  ASSERT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  for (const FakeJobs::Job* job : {&a, &b}) {
    jobs.turns().OnNeed({job->session, "host0", MiB(950), MiB(30),
                         absl::Milliseconds(100)});  // 30 + 30 + 920.
  }
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
}

TEST(SharingModeTest, AJobThatIsAloneIsFreeAgain) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  b.stopped = true;
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
  EXPECT_EQ(a.gate, FakeJobs::Job::Gate::kFree);
  b.stopped = false;
  b.at = jobs.now();
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
}

// Two that evaluate at the same time, or wait for input.
TEST(SharingModeTest, JobsThatComeBackTogetherAreNotFreeMeanwhile) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  jobs.Run(absl::Seconds(5));
  ASSERT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  a.stopped = b.stopped = true;
  while (jobs.turns().mode(0) != SharingMode::kFree) {
    jobs.Run(absl::Milliseconds(10));
  }
  a.stopped = b.stopped = false;
  a.at = b.at = jobs.now();
  jobs.Run(absl::Milliseconds(100));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
}

TEST(SharingModeTest, ThrashStartsQuantaForJobsOfUnknownNeeds) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = AddUnknown(&jobs, "a");
  FakeJobs::Job& b = AddUnknown(&jobs, "b");
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
  for (int i = 0; i < 20; ++i) {
    jobs.moved["a"] += MiB(100);  // 2 % of the time each.
    jobs.moved["b"] += MiB(100);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
  for (int i = 0; i < 10; ++i) {
    jobs.moved["a"] += MiB(1000);
    jobs.moved["b"] += MiB(1000);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(20));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.95);
  // One of them shrinks.
  b.spec.peak = MiB(300);
  b.swapped = Bytes();
  a.swapped = Bytes();
  a.spec.peak = MiB(500);
  jobs.Run(absl::Seconds(12));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

// Swap space is still being made: little moves, and both wait for it.
TEST(SharingModeTest, JobsThatWaitForEachOthersMovesThrash) {
  FakeJobs jobs(SmallDevice());
  AddUnknown(&jobs, "a");
  AddUnknown(&jobs, "b");
  const auto run = [&](absl::Duration a, absl::Duration b) {
    for (int i = 0; i < 4; ++i) {
      jobs.moved["a"] += MiB(10);
      jobs.moved["b"] += MiB(10);
      jobs.waited["a"] += a;
      jobs.waited["b"] += b;
      jobs.Run(absl::Milliseconds(500));
    }
  };
  run(absl::Milliseconds(400), absl::Milliseconds(20));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
  run(absl::Milliseconds(200), absl::Milliseconds(100));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
}

// What is live changes within a step: at its end both would fit.
TEST(SharingModeTest, AStepThatIsNotKnownNeedsWhatItHadLately) {
  FakeJobs jobs(SmallDevice());
  jobs.Add(Spec("a", 600, 550));
  FakeJobSpec spec = Spec("b", 700, 0);
  spec.known = false;
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(2));
  ASSERT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  jobs.TakeMostComputing();
  for (int i = 0; i < 20; ++i) {
    b.spec.peak = MiB(i % 4 == 3 ? 700 : 100);
    jobs.Run(absl::Milliseconds(500));
    EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  }
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  b.spec.peak = MiB(100);
  jobs.Run(absl::Seconds(12));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, OneJobThatMovesAloneIsNoThrash) {
  FakeJobs jobs(SmallDevice());
  AddUnknown(&jobs, "a");
  AddUnknown(&jobs, "b");
  for (int i = 0; i < 20; ++i) {
    jobs.moved["a"] += MiB(3000);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, JobsThatGrowDoNotComputeAtOnceAnyMore) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 1000, 900);
  FakeJobs::Job& a = jobs.Add(spec);
  spec = Spec("b", 50, 0);
  spec.known = false;
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  a.spec.peak = MiB(930);
  jobs.turns().OnNeed(
      {a.session, "host0", MiB(930), MiB(800), absl::Milliseconds(100)});
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
  b.spec.peak = MiB(500);
  jobs.Run(absl::Seconds(3));
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
}

FakeJobSpec Gated(const std::string& name, int peak) {
  FakeJobSpec spec = Spec(name, peak, peak);
  spec.gated = true;
  spec.known = false;
  return spec;
}

TEST(SharingModeTest, GatedJobsTakeQuantaUntilTheirNeedsAreKnown) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Gated("a", 300));
  FakeJobs::Job& b = jobs.Add(Gated("b", 300));
  jobs.Run(absl::Seconds(2));
  jobs.TakeMostComputing();
  jobs.Run(absl::Minutes(8));
  EXPECT_NE(jobs.turns().mode(0), SharingMode::kFree);
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.95);
  for (const FakeJobs::Job* job : {&a, &b}) {
    jobs.turns().OnNeed(
        {job->session, "host0", MiB(300), MiB(300), absl::Milliseconds(100)});
  }
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, AGatedJobNeedsNoMoreThanItsLimit) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Gated("a", 300);
  spec.limit = MiB(500);
  jobs.Add(spec);
  jobs.Add(Spec("b", 500, 100));
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kFree);
}

// It has to ask, before a section begins that nobody expects.
TEST(SharingModeTest, AGatedJobThatWasAwayComesBackToAClosedGate) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 600, 300);
  spec.gated = true;
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(2));
  b.stopped = true;
  jobs.Run(absl::Minutes(2));
  EXPECT_EQ(b.gate, FakeJobs::Job::Gate::kClosed);
  // Who computes alone is not disturbed.
  const int orders = a.orders;
  const double before = Seconds(a);
  jobs.Run(absl::Minutes(1));
  EXPECT_EQ(a.orders, orders);
  EXPECT_GE(Seconds(a) - before, 59);
  jobs.TakeMostComputing();
  b.stopped = false;
  b.at = jobs.now();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Seconds(b), 4);
}

TEST(SharingModeTest, GatedJobsAreNotSetFreeWithOthersAfterThrash) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 800, 0);
  spec.known = false;
  jobs.Add(spec);
  spec.name = "b";
  jobs.Add(spec);
  for (int i = 0; i < 10; ++i) {
    jobs.moved["a"] += MiB(1000);
    jobs.moved["b"] += MiB(1000);
    jobs.Run(absl::Milliseconds(500));
  }
  ASSERT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  jobs.Add(Gated("c", 100));
  jobs.Run(absl::Seconds(2));
  jobs.TakeMostComputing();
  jobs.Run(absl::Minutes(3));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
}

// A job whose step is not known yet, and one of a lower class that needs 600.
struct Classes {
  Classes() {
    FakeJobSpec spec = Spec("high", 300, 300);
    spec.priority = 1;
    spec.known = false;
    high = &jobs.Add(spec);
    low = &jobs.Add(Spec("low", 600, 100));
  }
  void Tell(int peak) {
    jobs.turns().OnNeed(
        {high->session, "host0", MiB(peak), MiB(100), high->spec.compute});
  }
  FakeJobs jobs{SmallDevice()};
  FakeJobs::Job* high;
  FakeJobs::Job* low;
};

TEST(SharingModeTest, ALowerClassWaitsUntilTheNeedsOfAHigherOneAreKnown) {
  Classes two;
  two.jobs.Run(absl::Seconds(5));
  EXPECT_LE(Seconds(*two.low), 0.1);
  EXPECT_GE(Seconds(*two.high), 4.8);
  two.Tell(300);
  two.jobs.Run(absl::Seconds(1));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
}

// A known job, and one of a lower class whose step is not known.
struct KnownHigh {
  explicit KnownHigh(int low_peak) {
    FakeJobSpec spec = Spec("high", 600, 100);
    spec.priority = 1;
    high = &jobs.Add(spec);
    jobs.Run(absl::Seconds(2));
    spec = Spec("low", low_peak, 100);
    spec.known = false;
    low = &jobs.Add(spec);
  }
  FakeJobs jobs{SmallDevice()};
  FakeJobs::Job* high;
  FakeJobs::Job* low;
};

TEST(SharingModeTest, ALowerClassThatFitsNeedNotBeKnownToCompute) {
  KnownHigh two(300);
  two.jobs.Run(absl::Seconds(10));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
  EXPECT_EQ(two.jobs.TakeMostComputing(), 2u);
  EXPECT_GE(Seconds(*two.low), 9.5);
}

TEST(SharingModeTest, ALowerClassThatOnceDidNotFitWaitsUntilItIsKnown) {
  KnownHigh two(300);
  two.jobs.Run(absl::Seconds(2));
  two.low->spec.peak = MiB(500);
  two.jobs.Run(absl::Seconds(1));
  EXPECT_NE(two.jobs.turns().mode(0), SharingMode::kFree);
  const double before = Seconds(*two.low);
  two.low->spec.peak = MiB(200);
  two.jobs.Run(absl::Seconds(10));
  EXPECT_LE(Seconds(*two.low) - before, 0.1);
  two.jobs.turns().OnNeed(
      {two.low->session, "host0", MiB(300), MiB(100), two.low->spec.compute});
  two.jobs.Run(absl::Seconds(2));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, AHigherClassThatNeedsTheDeviceKeepsIt) {
  Classes two;
  two.jobs.Run(absl::Milliseconds(500));
  two.Tell(900);
  two.jobs.Run(absl::Milliseconds(9500));
  EXPECT_LE(Seconds(*two.low), 0.1);
  EXPECT_GE(Seconds(*two.high), 9.8);
}

TEST(SharingModeTest, NeedsThatDoNotBecomeKnownArePresumedForSoLongOnly) {
  Classes two;
  two.jobs.Run(absl::Minutes(4));
  EXPECT_NE(two.jobs.turns().mode(0), SharingMode::kFree);
  two.jobs.Run(absl::Minutes(2));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
}

TEST(SharingModeTest, ALowerClassWaitsWithoutThrashWhereTwoDoNotFit) {
  Classes two;
  two.jobs.Run(absl::Minutes(6));
  EXPECT_EQ(two.jobs.turns().mode(0), SharingMode::kFree);
  two.high->spec.peak = MiB(500);
  two.high->swapped = MiB(100);
  two.jobs.Run(absl::Seconds(2));
  EXPECT_NE(two.jobs.turns().mode(0), SharingMode::kFree);
  const double before = Seconds(*two.low);
  two.jobs.Run(absl::Seconds(5));
  EXPECT_LE(Seconds(*two.low) - before, 0.1);
}

}  // namespace
}  // namespace mets::core
