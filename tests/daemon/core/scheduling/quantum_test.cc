#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

// Two jobs that bring 700 MiB back, and wait for it as long as given.
struct Exchange {
  explicit Exchange(absl::Duration cost) {
    FakeJobSpec spec = Spec("a", 950, 700);
    spec.exchange = cost;
    jobs.Add(spec).swapped = MiB(700);
    spec.name = "b";
    jobs.Add(spec).swapped = MiB(700);
    jobs.Run(absl::Seconds(20));
  }
  int64_t QuantaIn(absl::Duration time) {
    const int64_t before = jobs.turns().quanta_total(0);
    jobs.Run(time);
    return jobs.turns().quanta_total(0) - before;
  }
  FakeJobs jobs{SmallDevice()};
};

TEST(QuantumTest, AQuantumLastsFiftyTimesWhatItsJobWaitsForCopies) {
  // As long as the bus needs.
  EXPECT_NEAR(Exchange(absl::Milliseconds(70)).QuantaIn(absl::Seconds(70)), 20,
              2);
  // Many small copies that wait for each other.
  EXPECT_NEAR(Exchange(absl::Milliseconds(200)).QuantaIn(absl::Seconds(200)),
              20, 2);
  // They overlap with ops.
  EXPECT_NEAR(Exchange(absl::Milliseconds(10)).QuantaIn(absl::Seconds(10)), 20,
              2);
}

TEST(QuantumTest, TheFirstQuantumLastsFiftyTimesWhatTheBusNeeds) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 700));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 700));
  a.swapped = b.swapped = MiB(700);  // 70 ms each.
  jobs.Run(absl::Seconds(3));
  EXPECT_EQ(jobs.turns().quanta_total(0), 1);
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().quanta_total(0), 2);
}

TEST(QuantumTest, NobodyBelievesThatAJobWaitedLongerThanItHadTheDevice) {
  TurnScheduler turns(SmallDevice());
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  std::vector<TurnFacts> facts(2);
  for (uint64_t i : {0, 1}) {
    facts[i].session = SessionId(i + 1);
    facts[i].job = {DomainId(1), i == 0 ? "a" : "b"};
    facts[i].last_active = now;
  }
  turns.Update(now, facts);
  for (const TurnFacts& f : facts) {
    turns.OnNeed({f.session, "host0", MiB(900), MiB(600), absl::Seconds(1)});
  }
  const std::vector<GateOrder> orders = turns.Advance(now);
  ASSERT_EQ(orders.size(), 2u);
  now += absl::Seconds(2);
  for (const GateOrder& order : orders) {
    TurnEnded ended;
    ended.session = order.session;
    ended.order = order.order;
    ended.stalled = absl::InfiniteDuration();
    turns.OnEnded(now, ended);
  }
  EXPECT_EQ(turns.Find(facts[0].job, 0)->cost, absl::Seconds(2));
  // It had no quantum.
  EXPECT_EQ(turns.Find(facts[1].job, 0)->cost, absl::InfiniteDuration());
}

TEST(QuantumTest, AQuantumLastsAsLongAsItsExchangeNeedsWithLongSteps) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 950, 700);
  spec.compute = absl::Seconds(1);
  spec.exchange = absl::Milliseconds(70);  // 3.5 s: 4 steps.
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  a.swapped = b.swapped = MiB(700);
  jobs.Run(absl::Seconds(10));
  const int64_t before = jobs.turns().quanta_total(0);
  jobs.Run(absl::Seconds(80));
  EXPECT_NEAR(jobs.turns().quanta_total(0) - before, 20, 1);
}

TEST(QuantumTest, AFixedQuantumHoldsWhateverMoves) {
  TurnOptions options = SmallDevice();
  options.fixed_quantum = absl::Seconds(5);
  FakeJobs jobs(options);
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 30));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 30));
  a.swapped = b.swapped = MiB(700);
  jobs.Run(absl::Seconds(1));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  const int64_t before = jobs.turns().quanta_total(0);
  jobs.Run(absl::Seconds(100));
  EXPECT_NEAR(jobs.turns().quanta_total(0) - before, 20, 1);
}

TEST(QuantumTest, AQuantumIsBoundedByTheLongestWait) {
  TurnOptions options = SmallDevice();
  options.max_wait = absl::Seconds(5);
  FakeJobs jobs(options);
  FakeJobSpec spec = Spec("a", 950, 700);
  spec.exchange = absl::Milliseconds(90);
  for (const char* name : {"a", "b", "c"}) {
    spec.name = name;
    jobs.Add(spec).swapped = MiB(900);
  }
  spec.name = "d";
  FakeJobs::Job& d = jobs.Add(spec);
  d.swapped = MiB(900);
  jobs.Run(absl::Minutes(5));
  EXPECT_LE(d.longest_wait, absl::Seconds(5));
  EXPECT_GE(d.longest_wait, absl::Seconds(4));
}

TEST(QuantumTest, AQuantumShorterThanAStepIsOneStep) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 950, 700);
  spec.compute = absl::Milliseconds(500);
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  spec.name = "c";
  FakeJobs::Job& c = jobs.Add(spec);
  jobs.Run(absl::Minutes(1));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  EXPECT_NEAR(jobs.turns().quanta_total(0), a.steps + b.steps + c.steps, 3);
  EXPECT_GE(Seconds(a) + Seconds(b) + Seconds(c), 59);
}

TEST(QuantumTest, QuantaOfOneJobBeginWhereTheOtherPreparesItsInput) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("a", 900, 600);
  spec.input = absl::Milliseconds(300);
  FakeJobs::Job& a = jobs.Add(spec);
  spec.name = "b";
  FakeJobs::Job& b = jobs.Add(spec);
  jobs.Run(absl::Seconds(60));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
  // Each alone computes for a quarter of the time.
  EXPECT_GE(Seconds(a) + Seconds(b), 0.8 * 30);
  EXPECT_GE(Jain({Seconds(a), Seconds(b)}), 0.95);
}

// Sessions driven by hand: 1 and 2 of job "a", 3 of job "b", whose needs lead
// to quanta. The job "a" has the device first.
class QuantaTest : public ::testing::Test {
 protected:
  QuantaTest() : turns_(SmallDevice()) {
    turns_.Update(now_, Facts());
    for (uint64_t id : {1, 2, 3}) {
      turns_.OnNeed({SessionId(id), "host0", MiB(id == 3 ? 900 : 450),
                     MiB(id == 3 ? 600 : 300), absl::Milliseconds(100)});
    }
    Advance();
    EXPECT_EQ(turns_.mode(0), SharingMode::kQuanta);
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
      if (id == 3) facts.swapped = swapped_;
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
  void End(uint64_t id, absl::Duration stalled = absl::ZeroDuration()) {
    TurnEnded ended;
    ended.session = SessionId(id);
    ended.order = told_[id].order;
    ended.stalled = stalled;
    turns_.OnEnded(now_, ended);
    Advance();
  }

  // Session 3 gets the device, with 500 MiB to bring back.
  void HandToThird() {
    swapped_ = MiB(500);
    turns_.Update(now_, Facts());
    Want(3);
    End(1);
    End(2);
    ASSERT_TRUE(told_[3].open);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  Bytes swapped_;  // Of job "b".
  TurnScheduler turns_;
  std::map<uint64_t, GateOrder> told_;
};

TEST_F(QuantaTest, AQuantumMayBeIdleForAsLongAsHandingItOverAndBackTakes) {
  EXPECT_EQ(told_[1].idle, absl::Milliseconds(50));
  HandToThird();
  EXPECT_EQ(told_[3].idle, absl::Milliseconds(100));
}

// As the first one does, in which a program compiles what it runs.
TEST_F(QuantaTest, AQuantumIsNotIdleForWhatOnceCostMoreThanItsCopies) {
  HandToThird();
  Want(1);
  now_ += absl::Seconds(2);
  turns_.Update(now_, Facts());
  End(3, /*stalled=*/absl::Seconds(2));
  ASSERT_TRUE(told_[1].open);
  const OrderId before = told_[3].order;
  Want(3);
  Pass(absl::Seconds(1));
  End(1);
  End(2);
  Pass(absl::Seconds(1));
  ASSERT_TRUE(told_[3].open);
  ASSERT_NE(told_[3].order, before);
  EXPECT_EQ(told_[3].idle, absl::Milliseconds(400));
}

TEST_F(QuantaTest, AQuantumEndsWithTheStepOnceTurnsWillDo) {
  HandToThird();
  for (uint64_t id : {1, 2, 3}) {
    turns_.OnNeed({SessionId(id), "host0", MiB(id == 3 ? 900 : 450), MiB(15),
                   absl::Milliseconds(100)});
  }
  Want(1);
  Pass(absl::Seconds(1));
  EXPECT_EQ(turns_.mode(0), SharingMode::kTurns);
  EXPECT_FALSE(told_[3].open);
  EXPECT_EQ(told_[3].moment, GateMoment::kStepEnd);
}

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
