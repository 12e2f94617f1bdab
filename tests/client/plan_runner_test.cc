#include "client/src/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace mets::client {
namespace {

using testing::ElementsAre;

// What would move bytes: says what it was told, and can be held up.
class PlanRunnerTest : public testing::Test {
 protected:
  explicit PlanRunnerTest(int moves = 1)
      : runner_({[this](uint64_t b, const v1::Slot& s) { Evict(b, s); },
                 [this](uint64_t b, absl::FunctionRef<void()> has_memory) {
                   return Restore(b, has_memory);
                 }},
                moves) {
    v1::Plan plan;
    for (uint32_t logical : {1, 2, 3}) {
      v1::PlanSlot* slot = plan.add_slots();
      slot->set_buffer(logical);
      slot->mutable_slot()->set_slot_id(100 + logical);
    }
    runner_.Start(plan);
  }

  void Evict(uint64_t buffer, const v1::Slot& slot) {
    absl::MutexLock lock(&mutex_);
    log_.push_back(absl::StrCat("evict ", buffer, " to ", slot.slot_id()));
    ++evicting_;
    const auto may_end = [&] {
      return evictions_may_end_ || buffer == only_ends_;
    };
    mutex_.Await(absl::Condition(&may_end));
    --evicting_;
  }
  bool Restore(uint64_t buffer, absl::FunctionRef<void()> has_memory) {
    absl::MutexLock lock(&mutex_);
    log_.push_back(
        absl::StrCat(memory_ ? "restore " : "no memory for ", buffer));
    if (!memory_) return false;
    mutex_.Unlock();
    has_memory();
    mutex_.Lock();
    mutex_.Await(absl::Condition(&restores_may_end_));
    return true;
  }

  void Set(bool* what, bool value) {
    absl::MutexLock lock(&mutex_);
    *what = value;
  }
  // Blocks until that many things have happened.
  std::vector<std::string> Log(size_t size) {
    const auto there = [&] { return log_.size() >= size; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&there));
    return log_;
  }

  absl::Mutex mutex_;
  std::vector<std::string> log_;
  int evicting_ = 0;
  bool evictions_may_end_ = true;
  uint64_t only_ends_ = 0;  // This one's eviction may, at least.
  bool restores_may_end_ = true;
  bool memory_ = true;
  PlanRunner runner_;
};

class TwoMovesTest : public PlanRunnerTest {
 protected:
  TwoMovesTest() : PlanRunnerTest(2) {}
};

TEST_F(PlanRunnerTest, BuffersGoToTheSlotsOfTheirLogicalBuffers) {
  runner_.Post({{{11, 1}, {12, 2}, {13, 9}}, {}});
  EXPECT_THAT(Log(2), ElementsAre("evict 11 to 101", "evict 12 to 102"));
  runner_.Stop();
  EXPECT_EQ(log_.size(), 2u);  // Logical buffer 9 has no slot.
}

TEST_F(PlanRunnerTest, AnEvictionIsDroppedWhenItsBufferIsToComeBack) {
  Set(&evictions_may_end_, false);
  runner_.Post({{{11, 1}, {12, 2}, {13, 3}}, {}});
  Log(1);
  runner_.Post({{}, {12}});
  EXPECT_THAT(Log(2), ElementsAre("evict 11 to 101", "restore 12"));
  Set(&evictions_may_end_, true);
  EXPECT_THAT(Log(3),
              ElementsAre("evict 11 to 101", "restore 12", "evict 13 to 103"));
  runner_.Stop();
  EXPECT_EQ(log_.size(), 3u);
}

TEST_F(PlanRunnerTest, RestoresWaitInTheirOrderUntilThereIsMemory) {
  Set(&memory_, false);
  runner_.Post({{}, {11, 12}});
  Log(1);
  runner_.SomethingChanged();
  EXPECT_THAT(Log(2), ElementsAre("no memory for 11", "no memory for 11"));
  Set(&memory_, true);
  runner_.SomethingChanged();
  Log(4);
  runner_.Stop();
  EXPECT_THAT(log_, ElementsAre("no memory for 11", "no memory for 11",
                                "restore 11", "restore 12"));
}

TEST_F(PlanRunnerTest, ARestoreIsDroppedWhenItsBufferIsToLeaveAgain) {
  Set(&memory_, false);
  runner_.Post({{}, {11, 12}});
  Log(1);
  runner_.Post({{{11, 1}}, {}});
  std::vector<std::string> log = Log(3);
  runner_.Stop();
  EXPECT_EQ(log[0], "no memory for 11");
  EXPECT_THAT(
      std::vector<std::string>(log.begin() + 1, log.end()),
      testing::UnorderedElementsAre("evict 11 to 101", "no memory for 12"));
}

TEST_F(PlanRunnerTest, StopWaitsForTheMoveUnderWayAndForgetsTheRest) {
  Set(&evictions_may_end_, false);
  runner_.Post({{{11, 1}, {12, 2}}, {}});
  Log(1);
  int running_at_end = -1;
  std::thread stopper([&] {
    runner_.Stop();
    absl::MutexLock lock(&mutex_);
    running_at_end = evicting_;
  });
  while (runner_.following()) std::this_thread::yield();
  Set(&evictions_may_end_, true);
  stopper.join();
  EXPECT_EQ(running_at_end, 0);
  runner_.Post({{{13, 3}}, {}});
  runner_.Stop();
  EXPECT_THAT(log_, ElementsAre("evict 11 to 101"));
}

TEST_F(PlanRunnerTest, TheNextPlanKnowsNothingOfTheLastOne) {
  Set(&memory_, false);
  runner_.Post({{}, {11}});
  Log(1);
  runner_.Stop();
  v1::Plan plan;
  plan.add_slots()->set_buffer(5);
  runner_.Start(plan);
  Set(&memory_, true);
  runner_.Post({{{12, 1}, {15, 5}}, {}});
  runner_.Post({{}, {13}});
  Log(3);
  runner_.Stop();
  EXPECT_THAT(log_, testing::UnorderedElementsAre(
                        "no memory for 11", "evict 15 to 0", "restore 13"));
}

TEST_F(PlanRunnerTest, ADemandWaitsForEvictionsThatWereDueAndGoesFirst) {
  Set(&evictions_may_end_, false);
  runner_.Post({{{11, 1}, {12, 2}}, {}});
  {
    PlanRunner::Demand demand(runner_);
    runner_.Post({{{13, 3}}, {14}});
    Set(&evictions_may_end_, true);
    int waits = 0;
    while (demand.AwaitEviction()) ++waits;
    EXPECT_LE(waits, 2);
    EXPECT_THAT(Log(2),
                testing::IsSupersetOf({"evict 11 to 101", "evict 12 to 102"}));
    EXPECT_THAT(Log(2), testing::Not(testing::Contains("restore 14")));
  }
  EXPECT_THAT(Log(4), testing::Contains("restore 14"));
}

TEST_F(PlanRunnerTest, ADemandDoesNotWaitForEvictionsOfAPlanThatHasEnded) {
  Set(&evictions_may_end_, false);
  runner_.Post({{{11, 1}, {12, 2}}, {}});
  Log(1);
  PlanRunner::Demand demand(runner_);
  runner_.Drop();
  Set(&evictions_may_end_, true);
  while (demand.AwaitEviction()) {
  }
  runner_.Stop();
  EXPECT_THAT(log_, ElementsAre("evict 11 to 101"));
}

TEST_F(TwoMovesTest, TwoMovesEachWayAreUnderWayAtATime) {
  Set(&evictions_may_end_, false);
  Set(&restores_may_end_, false);
  runner_.Post({{{11, 1}, {12, 2}, {13, 3}}, {14, 15, 16}});
  EXPECT_THAT(Log(4), testing::UnorderedElementsAre(
                          "evict 11 to 101", "evict 12 to 102", "restore 14",
                          "restore 15"));
  Set(&evictions_may_end_, true);
  Set(&restores_may_end_, true);
  Log(6);
  runner_.Stop();
}

TEST_F(TwoMovesTest, NoRestorePassesOneThatHasNoMemory) {
  Set(&memory_, false);
  runner_.Post({{}, {11, 12}});
  Log(1);
  runner_.SomethingChanged();
  Log(2);
  runner_.Stop();
  EXPECT_THAT(log_, ElementsAre("no memory for 11", "no memory for 11"));
}

TEST_F(TwoMovesTest, ADemandWaitsForTheEarlierOfTwoEvictions) {
  Set(&evictions_may_end_, false);
  runner_.Post({{{11, 1}}, {}});
  Log(1);
  PlanRunner::Demand demand(runner_);
  runner_.Post({{{12, 2}}, {}});
  Log(2);
  std::thread ender([this] {
    {
      absl::MutexLock lock(&mutex_);
      only_ends_ = 12;  // The later one.
    }
    absl::SleepFor(absl::Milliseconds(50));
    Set(&evictions_may_end_, true);
  });
  while (demand.AwaitEviction()) {
  }
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(evicting_, 0);
  }
  ender.join();
  runner_.Stop();
}

}  // namespace
}  // namespace mets::client
