#include "daemon/core/scheduling/turn_scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

// A pool of 1,000 MiB, so that sizes are per mille of it.
TurnOptions Options() {
  TurnOptions options;
  options.device = "host0";
  options.pool = MiB(1000);
  options.bus_bytes_per_second = static_cast<double>(MiB(10000).count());
  return options;
}

FakeJobSpec Spec(const std::string& name, int peak, int persistent) {
  FakeJobSpec spec;
  spec.name = name;
  spec.peak = MiB(peak);
  spec.persistent = MiB(persistent);
  return spec;
}

double Seconds(const FakeJobs::Job& job) {
  return absl::ToDoubleSeconds(job.computed);
}

TEST(TurnSchedulerTest, JobsThatFitAreToldNothing) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 500, 100));
  FakeJobs::Job& b = jobs.Add(Spec("b", 500, 100));
  jobs.Run(absl::Seconds(30));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
  EXPECT_EQ(jobs.turns().next_deadline(), absl::InfiniteFuture());
  EXPECT_EQ(a.orders + b.orders, 0);
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
}

TEST(TurnSchedulerTest, JobsWhoseEphemeralBytesClashComputeStepByStep) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 40));
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(59));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Seconds(a) + Seconds(b), 59.0);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.99);
  EXPECT_EQ(jobs.turns().quanta_total(), 0);
  EXPECT_GE(jobs.turns().turns_total(), 580);
}

TEST(TurnSchedulerTest, TwoHalfIdleJobsFillTheDevice) {
  FakeJobs jobs(Options());
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
  FakeJobs jobs(Options());
  jobs.Add(Spec("a", 440, 20));
  jobs.Add(Spec("b", 440, 20));
  jobs.Add(Spec("c", 440, 20));
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(30));
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
}

TEST(TurnSchedulerTest, EqualWeightsGetEqualTimeWhateverTheirSteps) {
  FakeJobs jobs(Options());
  std::vector<FakeJobs::Job*> all;
  for (int i = 0; i < 5; ++i) {
    FakeJobSpec spec = Spec("job" + std::to_string(i), 900, 20);
    spec.compute = absl::Milliseconds(20 << i);
    all.push_back(&jobs.Add(spec));
  }
  jobs.Run(absl::Minutes(2));
  std::vector<double> times;
  for (const FakeJobs::Job* job : all) times.push_back(Seconds(*job));
  EXPECT_GE(Jain(times), 0.95);
}

// Progress ÷ weight, for weights 1, 2 and 4.
void ExpectWeightsHold(FakeJobs& jobs, int peak, int persistent) {
  std::vector<FakeJobs::Job*> all;
  for (int weight : {1, 2, 4}) {
    FakeJobSpec spec = Spec("w" + std::to_string(weight), peak, persistent);
    spec.weight = weight;
    all.push_back(&jobs.Add(spec));
  }
  jobs.Run(absl::Minutes(20));
  double sum = 0;
  for (const FakeJobs::Job* job : all) sum += Seconds(*job);
  for (const FakeJobs::Job* job : all) {
    const double due = sum * job->spec.weight / 7;
    EXPECT_NEAR(Seconds(*job) / due, 1, 0.1) << job->spec.name;
    EXPECT_LE(job->longest_wait, absl::Seconds(30));
  }
  EXPECT_GE(sum, 20 * 60 * 0.97);
}

TEST(TurnSchedulerTest, ProgressFollowsWeightsInTurns) {
  FakeJobs jobs(Options());
  ExpectWeightsHold(jobs, 900, 20);
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
}

TEST(TurnSchedulerTest, ProgressFollowsWeightsInQuanta) {
  FakeJobs jobs(Options());
  ExpectWeightsHold(jobs, 900, 600);
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
}

TEST(TurnSchedulerTest, AQuantumLastsFiftyTimesItsExchange) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 700));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 700));
  a.swapped = b.swapped = MiB(700);  // 70 ms each.
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  const int64_t before = jobs.turns().quanta_total();
  jobs.Run(absl::Seconds(70));
  EXPECT_NEAR(jobs.turns().quanta_total() - before, 20, 2);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.99);
}

TEST(TurnSchedulerTest, AQuantumLastsAsLongAsItsExchangeNeedsWithLongSteps) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("a", 950, 700);
  spec.compute = absl::Seconds(1);
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  a.swapped = b.swapped = MiB(700);  // 3.5 s: 4 steps.
  jobs.Run(absl::Seconds(10));
  const int64_t before = jobs.turns().quanta_total();
  jobs.Run(absl::Seconds(80));
  EXPECT_NEAR(jobs.turns().quanta_total() - before, 20, 1);
}

TEST(TurnSchedulerTest, AQuantumCountsWhatLeavesForIt) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 700));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 700));
  a.swapped = b.swapped = MiB(700);
  const FakeJobs::Job* had = nullptr;
  int64_t before = 0;
  for (int i = 0; i < 9000; ++i) {
    const FakeJobs::Job* has = a.computing ? &a : b.computing ? &b : had;
    if (has != std::exchange(had, has)) {
      jobs.moved[has == &a ? "b" : "a"] += MiB(700);
    }
    if (i == 2000) before = jobs.turns().quanta_total();
    jobs.Run(absl::Milliseconds(10));
  }
  // 140 ms each.
  EXPECT_NEAR(jobs.turns().quanta_total() - before, 10, 1);
}

TEST(TurnSchedulerTest, AFixedQuantumHoldsWhateverMoves) {
  TurnOptions options = Options();
  options.fixed_quantum = absl::Seconds(5);
  FakeJobs jobs(options);
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  a.swapped = b.swapped = MiB(700);
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  const int64_t before = jobs.turns().quanta_total();
  jobs.Run(absl::Seconds(100));
  EXPECT_NEAR(jobs.turns().quanta_total() - before, 20, 1);
}

TEST(TurnSchedulerTest, AQuantumIsBoundedByTheLongestWait) {
  TurnOptions options = Options();
  options.max_wait = absl::Seconds(5);
  FakeJobs jobs(options);
  for (const char* name : {"a", "b", "c"}) {
    jobs.Add(Spec(name, 950, 700)).swapped = MiB(900);
  }
  FakeJobs::Job& d = jobs.Add(Spec("d", 950, 700));
  d.swapped = MiB(900);
  jobs.Run(absl::Minutes(5));
  EXPECT_LE(d.longest_wait, absl::Seconds(5));
  EXPECT_GE(d.longest_wait, absl::Seconds(4));
}

TEST(TurnSchedulerTest, AQuantumShorterThanAStepIsOneStep) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("a", 950, 700);
  spec.compute = absl::Milliseconds(500);
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  spec.name = "c";
  FakeJobs::Job& c = jobs.Add(spec);
  jobs.Run(absl::Minutes(1));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  EXPECT_NEAR(jobs.turns().quanta_total(), a.steps + b.steps + c.steps, 3);
  EXPECT_GE(Seconds(a) + Seconds(b) + Seconds(c), 59);
}

TEST(TurnSchedulerTest, JobsThatGrowDoNotComputeAtOnceAnyMore) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("a", 1000, 900);
  FakeJobs::Job& a = jobs.Add(spec);
  spec = Spec("b", 50, 0);
  spec.known = false;
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  a.spec.peak = MiB(930);
  jobs.turns().OnNeed(
      {a.session, "host0", MiB(930), MiB(800), absl::Milliseconds(100)});
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  EXPECT_EQ(jobs.TakeMostComputing(), 2u);
  b.spec.peak = MiB(500);
  jobs.Run(absl::Seconds(3));
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
}

TEST(TurnSchedulerTest, HigherPriorityGoesFirstAndNobodyStarves) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  FakeJobs::Job& high = jobs.Add(spec);
  FakeJobs::Job& low = jobs.Add(Spec("low", 950, 30));
  FakeJobs::Job& lower = jobs.Add(Spec("lower", 950, 30));
  jobs.Run(absl::Minutes(5));
  EXPECT_LE(low.longest_wait, absl::Seconds(30));
  EXPECT_LE(lower.longest_wait, absl::Seconds(30));
  EXPECT_GT(low.steps, 5);
  EXPECT_GT(lower.steps, 5);
  EXPECT_GE(Seconds(high), 0.98 * 300);
}

TEST(TurnSchedulerTest, ALowerClassWithLongStepsHardlySlowsAHigherOne) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.compute = absl::Seconds(1);
  spec.priority = 1;
  FakeJobs::Job& high = jobs.Add(spec);
  spec.name = "low";
  spec.priority = 0;
  FakeJobs::Job& low = jobs.Add(spec);
  jobs.Run(absl::Minutes(10));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  EXPECT_GE(Seconds(high), 0.98 * 600);
  EXPECT_LE(low.longest_wait, absl::Seconds(30));
  EXPECT_GT(Seconds(low), 3);
}

TEST(TurnSchedulerTest, ALowerClassComputesInTheGapsThatItFits) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  spec.input = absl::Milliseconds(400);
  FakeJobs::Job& high = jobs.Add(spec);
  FakeJobs::Job& low = jobs.Add(Spec("low", 950, 30));
  jobs.Run(absl::Minutes(5));
  EXPECT_GE(high.steps, 0.98 * 600);
  EXPECT_GE(low.steps, 600);
}

TEST(TurnSchedulerTest, NewcomersDoNotCatchUp) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 20));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 20));
  jobs.Run(absl::Seconds(60));
  FakeJobs::Job& c = jobs.Add(Spec("c", 950, 20));
  const double a_before = Seconds(a);
  jobs.Run(absl::Seconds(30));
  EXPECT_GE(Jain({Seconds(a) - a_before, Seconds(c)}), 0.99);
  EXPECT_GT(Seconds(b), 30);
}

TEST(TurnSchedulerTest, AJobThatIsAloneIsFreeAgain) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  b.stopped = true;
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
  EXPECT_EQ(a.gate, FakeJobs::Job::Gate::kFree);
  b.stopped = false;
  b.at = jobs.now();
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
}

TEST(TurnSchedulerTest, ADeadHolderOfATurnBlocksNobody) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 900, 20));
  FakeJobs::Job& b = jobs.Add(Spec("b", 900, 20));
  FakeJobs::Job& c = jobs.Add(Spec("c", 900, 20));
  jobs.Run(absl::Milliseconds(3050));
  jobs.Remove(a.computing ? a : b.computing ? b : c);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(10));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(jobs.turns().turns_total(), 120);
}

TEST(TurnSchedulerTest, ASilentHolderLosesItsTurnAfterTheOrderTimeout) {
  TurnOptions options = Options();
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

TEST(TurnSchedulerTest, AProcessWhoseStreamComesBackTakesPartAgain) {
  FakeJobs jobs(Options());
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

TEST(TurnSchedulerTest, ThrashStartsQuantaForJobsOfUnknownNeeds) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("a", 800, 0);
  spec.known = false;
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  a.swapped = b.swapped = MiB(300);
  jobs.Run(absl::Seconds(5));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
  for (int i = 0; i < 20; ++i) {
    jobs.moved["a"] += MiB(100);  // 2 % of the time each.
    jobs.moved["b"] += MiB(100);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
  for (int i = 0; i < 10; ++i) {
    jobs.moved["a"] += MiB(1000);
    jobs.moved["b"] += MiB(1000);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  jobs.TakeMostComputing();
  jobs.Run(absl::Seconds(20));
  EXPECT_EQ(jobs.TakeMostComputing(), 1u);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.95);
  // One of them shrinks.
  b.spec.peak = MiB(300);
  b.swapped = Bytes();
  a.swapped = Bytes();
  a.spec.peak = MiB(500);
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
}

TEST(TurnSchedulerTest, OneJobThatMovesAloneIsNoThrash) {
  FakeJobs jobs(Options());
  FakeJobSpec spec = Spec("a", 800, 0);
  spec.known = false;
  jobs.Add(spec).swapped = MiB(300);
  spec.name = "b";
  jobs.Add(spec).swapped = MiB(300);
  for (int i = 0; i < 20; ++i) {
    jobs.moved["a"] += MiB(3000);
    jobs.Run(absl::Milliseconds(500));
  }
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
}

TEST(TurnSchedulerTest, ModesFollowTheNeeds) {
  FakeJobs jobs(Options());
  FakeJobs::Job& a = jobs.Add(Spec("a", 600, 100));
  jobs.Add(Spec("b", 600, 300));
  jobs.Run(absl::Seconds(2));
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  const auto need = [&](int peak, int persistent) {
    jobs.turns().OnNeed({a.session, "host0", MiB(peak), MiB(persistent),
                         absl::Milliseconds(100)});
    jobs.Run(absl::Seconds(2));
  };
  need(900, 750);  // 750 + 300 + 300.
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  need(600, 395);  // Less than what fits, but not by enough.
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kQuanta);
  need(600, 300);
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  need(390, 100);
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kTurns);
  need(300, 100);
  EXPECT_EQ(jobs.turns().mode(), SharingMode::kFree);
}

TEST(TurnSchedulerTest, GarbageChangesNothing) {
  FakeJobs jobs(Options());
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
  EXPECT_GE(jobs.turns().turns_total(), 90);
}

// Sessions driven by hand: 1 and 2 of job "a", 3 of job "b", whose needs lead
// to quanta. The job "a" has the device first.
class QuantaTest : public ::testing::Test {
 protected:
  QuantaTest() : turns_(Options()) {
    turns_.Update(now_, Facts());
    for (uint64_t id : {1, 2, 3}) {
      turns_.OnNeed({SessionId(id), "host0", MiB(id == 3 ? 900 : 450),
                     MiB(id == 3 ? 600 : 300), absl::Milliseconds(100)});
    }
    Advance();
    EXPECT_EQ(turns_.mode(), SharingMode::kQuanta);
    EXPECT_TRUE(told_[1].open && told_[2].open && !told_[3].open);
    End(3);
  }

  std::vector<TurnFacts> Facts() const {
    std::vector<TurnFacts> all;
    for (uint64_t id : {1, 2, 3}) {
      TurnFacts facts;
      facts.session = SessionId(id);
      facts.job = {DomainId(1), id == 3 ? "b" : "a"};
      facts.last_active = now_;
      all.push_back(facts);
    }
    return all;
  }
  void Advance() {
    for (GateOrder& order : turns_.Advance(now_)) {
      told_[order.session.value()] = std::move(order);
    }
  }
  void Pass(absl::Duration time) {
    for (const absl::Time end = now_ + time; now_ < end;) {
      now_ += absl::Seconds(1);
      turns_.Update(now_, Facts());
      Advance();
    }
  }
  void Want(uint64_t id) {
    turns_.OnWanted(now_, {SessionId(id), "host0", told_[id].order});
    Advance();
  }
  void End(uint64_t id) {
    TurnEnded ended;
    ended.session = SessionId(id);
    ended.order = told_[id].order;
    turns_.OnEnded(now_, ended);
    Advance();
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  TurnScheduler turns_;
  std::map<uint64_t, GateOrder> told_;
};

TEST_F(QuantaTest, WhoAsksWhileItHasTheDeviceHasNotWaited) {
  Want(1);
  Pass(absl::Seconds(28));
  Want(3);
  Pass(absl::Seconds(1));
  End(1);
  End(2);
  EXPECT_TRUE(told_[3].open);
  EXPECT_FALSE(told_[1].open);
}

TEST_F(QuantaTest, AProcessThatWasIdleGoesOnWhileItsJobHasTheDevice) {
  End(1);
  Pass(absl::Seconds(1));
  const OrderId before = told_[1].order;
  Want(1);
  EXPECT_TRUE(told_[1].open);
  EXPECT_NE(told_[1].order, before);
}

}  // namespace
}  // namespace mets::core
