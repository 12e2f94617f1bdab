#include "client/src/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace mets::client {
namespace {

class GateTest : public testing::Test {
 protected:
  void Follow(v1::GateState state, v1::GateMoment moment, uint32_t idle_ms) {
    v1::Gate order;
    order.set_order_id(++order_);
    order.set_epoch(9);
    order.set_device("host0");
    order.set_state(state);
    order.set_moment(moment);
    order.set_idle_ms(idle_ms);
    gate_.Follow(order);
  }
  void Turn(uint32_t idle_ms = 60000) {
    Follow(v1::GATE_STATE_OPEN, v1::GATE_MOMENT_STEP_END, idle_ms);
  }
  void Quantum(uint32_t idle_ms = 60000) {
    Follow(v1::GATE_STATE_OPEN, v1::GATE_MOMENT_NOW, idle_ms);
  }
  void Free() { Follow(v1::GATE_STATE_OPEN, v1::GATE_MOMENT_NOW, 0); }
  void CloseNow() { Follow(v1::GATE_STATE_CLOSED, v1::GATE_MOMENT_NOW, 0); }
  void CloseAtStepEnd() {
    Follow(v1::GATE_STATE_CLOSED, v1::GATE_MOMENT_STEP_END, 0);
  }
  void RunOps(int count) {
    for (int i = 0; i < count; ++i) {
      gate_.Enter();
      gate_.Leave();
    }
  }

  // No op runs for so long.
  void Pause(absl::Duration time) {
    absl::SleepFor(time);
    gate_.Poll();
  }
  // The first waits for its turn, which comes.
  void OpsCome(int count) {
    std::thread thread([this, count] { RunOps(count); });
    AwaitTold(1);
    EXPECT_EQ(Told(), "W");
    Turn(kIdleMs);
    thread.join();
  }

  // The same, where there is no turn.
  void Ops(int count) {
    Told();
    gate_.closed() ? OpsCome(count) : RunOps(count);
  }

  // Steps whose longest time without an op is one in which the program waits.
  // From the step `learnt` on the turn ends at their pause, behind that.
  void RunStepsThatWait(bool polls, int learnt) {
    for (int i = 0; i < 12; ++i) {
      gate_.StepEnds();
      const bool known = i >= learnt;
      if (i > learnt) {
        EXPECT_EQ(Told(), "") << "one turn a step";
      } else {
        Told();
        Turn();
      }
      idle_ = false;
      RunOps(3);
      for (int k = 0; k < 3; ++k) {
        absl::SleepFor(absl::Milliseconds(8));
        if (polls) gate_.Poll();
      }
      EXPECT_EQ(Told(), "");
      idle_ = true;
      RunOps(1);
      EXPECT_EQ(Told(), known ? "S" : "");
      absl::SleepFor(absl::Milliseconds(4));
      known ? OpsCome(6) : RunOps(6);
    }
  }

  // The messages since the last call: 'E' ended, 'S' ended between steps, 'W'
  // wanted; each must name the last order.
  std::string Told() {
    absl::MutexLock lock(&mutex_);
    std::string told;
    for (const v1::ClientMessage& m : sent_) {
      if (m.has_turn_ended()) {
        stalled_ = absl::Microseconds(m.turn_ended().stalled_us());
        told += m.turn_ended().step_end() ? 'S' : 'E';
        EXPECT_EQ(m.turn_ended().order_id(), order_);
        EXPECT_EQ(m.turn_ended().epoch(), 9u);
        EXPECT_EQ(m.turn_ended().device(), "host0");
      } else {
        told += 'W';
        EXPECT_EQ(m.turn_wanted().order_id(), order_);
      }
    }
    sent_.clear();
    return told;
  }
  void AwaitTold(size_t messages) {
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return sent_.size() >= messages;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&enough));
  }

  // An op waits for copies, for 2 ms and more.
  void Stall() {
    const WaitClock::Wait wait(waits_);
    const absl::Duration before = waits_.waited();
    while (waits_.waited() < before + absl::Milliseconds(2)) {
      absl::SleepFor(absl::Microseconds(100));
    }
  }

  static constexpr uint32_t kIdleMs = 10;
  static constexpr absl::Duration kPause = absl::Milliseconds(25);
  // A pause; longer than what a thread waits for a processor.
  static constexpr absl::Duration kGap = absl::Milliseconds(4);

  uint64_t order_ = 0;
  absl::Duration stalled_;               // Of the last turn that Told has seen.
  std::vector<size_t> told_before_end_;  // Messages, at each end of a turn.
  std::atomic<bool> quiet_{true}, idle_{true};
  Bytes live_ = MiB(16);
  absl::Duration end_takes_;
  absl::Mutex mutex_;
  std::deque<v1::ClientMessage> sent_;
  WaitClock waits_;
  Gate gate_{"host0",
             [this](v1::ClientMessage m) {
               absl::MutexLock lock(&mutex_);
               sent_.push_back(std::move(m));
             },
             [this] { return quiet_.load(); },
             &waits_,
             {[](uint64_t) { return false; },
              [this] {
                absl::SleepFor(end_takes_);
                absl::MutexLock lock(&mutex_);
                told_before_end_.push_back(sent_.size());
              },
              [this] { return live_; }, [this] { return idle_.load(); }}};
};

TEST_F(GateTest, IsOpenAndDoesNotCountUntilItIsTold) {
  EXPECT_FALSE(gate_.gating());
  gate_.StepEnds();
  gate_.Poll();
  EXPECT_EQ(Told(), "");
}

TEST_F(GateTest, ClosesAtOnceWhenNothingRuns) {
  CloseNow();
  EXPECT_TRUE(gate_.gating());
  EXPECT_EQ(Told(), "E");
}

TEST_F(GateTest, WhatComesBeforeTheEndOfATurnComesBeforeItIsTold) {
  Quantum();
  gate_.Enter();
  CloseNow();
  EXPECT_TRUE(told_before_end_.empty());
  gate_.Leave();
  EXPECT_EQ(told_before_end_, std::vector<size_t>{0});
  EXPECT_EQ(Told(), "E");
  gate_.Poll();
  EXPECT_EQ(told_before_end_.size(), 1u);
}

TEST_F(GateTest, AWaitingOpAsksForItsTurnOnceAndStartsWithIt) {
  CloseNow();
  EXPECT_EQ(Told(), "E");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      gate_.Enter();
      gate_.Leave();
    });
  }
  AwaitTold(1);
  EXPECT_EQ(Told(), "W");
  Quantum();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Told(), "");
  EXPECT_GT(waits_.waited(), absl::ZeroDuration());
}

TEST_F(GateTest, TheTurnEndsWhenTheLastOpHasEnded) {
  Quantum();
  gate_.Enter();
  gate_.Enter();
  CloseNow();
  EXPECT_EQ(Told(), "");
  gate_.Leave();
  EXPECT_EQ(Told(), "");
  gate_.Leave();
  EXPECT_EQ(Told(), "E");
}

TEST_F(GateTest, OpsThatBeganUncountedAreWaitedFor) {
  quiet_ = false;
  CloseNow();
  gate_.Poll();
  EXPECT_EQ(Told(), "");
  quiet_ = true;
  gate_.Poll();
  EXPECT_EQ(Told(), "E");
  gate_.Poll();
  EXPECT_EQ(Told(), "");
}

TEST_F(GateTest, ATurnEndsWithTheStep) {
  Turn();
  gate_.StepEnds();  // The step begins.
  RunOps(3);
  EXPECT_EQ(Told(), "");
  gate_.StepEnds();
  EXPECT_EQ(Told(), "S");
}

TEST_F(GateTest, StepsOfEqualOpsEndWithTheirLastOp) {
  for (int i = 0; i < 3; ++i) {
    Turn();
    gate_.StepEnds();
    RunOps(5);
    gate_.StepEnds();
    Told();
  }
  Turn();
  RunOps(4);
  EXPECT_EQ(Told(), "");
  RunOps(1);
  EXPECT_EQ(Told(), "S");
  gate_.StepEnds();
  EXPECT_EQ(Told(), "");
}

// Where the step is said to end is not quite where the program pauses.
TEST_F(GateTest, ATurnEndsWhereTheProgramPauses) {
  Turn(kIdleMs);
  for (int i = 0; i < 6; ++i) {
    gate_.StepEnds();
    RunOps(1);
    const bool known = i > 2;
    EXPECT_EQ(Told(), known ? "S" : "");
    Pause(kPause);
    EXPECT_EQ(Told(), known ? "" : "E") << "it was idle";
    OpsCome(9);
  }
  gate_.StepEnds();
  EXPECT_EQ(Told(), "") << "one turn a step";
}

// A program that waits for each step's result, where the step is said to end
// amid its ops.
TEST_F(GateTest, ATurnEndsWhereTheDeviceIsIdleForLongest) {
  for (int i = 0; i < 8; ++i) {
    gate_.StepEnds();
    if (i > 3) {
      EXPECT_EQ(Told(), "") << "one turn a step";
    } else {
      Told();
      Turn();
    }
    RunOps(3);
    const bool known = i > 2;
    EXPECT_EQ(Told(), known ? "S" : "");
    absl::SleepFor(kGap);
    known ? OpsCome(6) : RunOps(6);
  }
}

TEST_F(GateTest, ATurnDoesNotEndWhereTheProgramIsSeenToWaitForItsDevice) {
  RunStepsThatWait(/*polls=*/true, /*learnt=*/3);
}

TEST_F(GateTest, ATurnEndsBehindWhereTheProgramWaitsForItsDevice) {
  RunStepsThatWait(/*polls=*/false, /*learnt=*/6);
}

TEST_F(GateTest, AProgramThatRunsAheadDoesNotPause) {
  idle_ = false;
  for (int i = 0; i < 8; ++i) {
    Turn();
    gate_.StepEnds();
    RunOps(3);
    absl::SleepFor(absl::Milliseconds(4));
    RunOps(5 + i % 2);
    EXPECT_EQ(Told(), "");
    gate_.StepEnds();
    EXPECT_EQ(Told(), "S");
  }
}

// What METS does there makes no place a pause.
TEST_F(GateTest, WhatTheEndOfATurnTakesIsNoPause) {
  end_takes_ = 2 * kGap;
  Turn();
  std::string ends;
  for (int i = 0; i < 10; ++i) {
    gate_.StepEnds();
    Ops(3);
    ends += gate_.closed() ? '+' : '-';
    absl::SleepFor(kGap);
    Ops(7);
  }
  EXPECT_THAT(ends.substr(5), testing::HasSubstr("+"));
}

TEST_F(GateTest, WhereOpsWereNotCountedNoStepIsKnownToHaveEnded) {
  gate_.StepEnds();
  gate_.StepEnds();
  CloseAtStepEnd();
  EXPECT_EQ(Told(), "");
  RunOps(1);
  EXPECT_EQ(Told(), "");
  gate_.StepEnds();
  EXPECT_EQ(Told(), "S");
}

// Ops that were not counted lie between.
TEST_F(GateTest, WhatWasLearntIsForgottenWhereTurnsEnd) {
  Turn();
  for (int i = 0; i < 5; ++i) {
    gate_.StepEnds();
    Ops(3);
    absl::SleepFor(kGap);
    Ops(7);
  }
  gate_.StepEnds();
  Free();
  Turn();
  RunOps(3);
  EXPECT_FALSE(gate_.closed());
}

TEST_F(GateTest, APauseAboutThereEndsTheTurnSoon) {
  Turn(kIdleMs);
  for (int i = 0; i < 8; ++i) {
    gate_.StepEnds();
    RunOps(2 + i % 3);
    EXPECT_EQ(Told(), "");
    Pause(i > 1 ? absl::Milliseconds(3) : kPause);
    EXPECT_EQ(Told(), "E");
    absl::SleepFor(kPause);
    OpsCome(40);
  }
  gate_.StepEnds();
  EXPECT_EQ(Told(), "") << "one turn a step";
}

TEST_F(GateTest, BehindAPauseTheTurnGoesOnToTheNextOne) {
  Turn(kIdleMs);
  for (int i = 0; i < 6; ++i) {
    gate_.StepEnds();
    RunOps(9 + i % 2);
    Pause(kPause);
    EXPECT_EQ(Told(), "E");
    OpsCome(1);
    Pause(absl::Milliseconds(3));
    EXPECT_EQ(Told(), "");
    RunOps(30);
  }
}

TEST_F(GateTest, ATurnThatWasEndedAmidAStepGoesOnToItsEnd) {
  for (int i = 0; i < 4; ++i) {
    Turn();
    RunOps(3);
    CloseNow();
    EXPECT_EQ(Told(), "E");
    Turn();
    RunOps(2 + i);
    gate_.StepEnds();
    EXPECT_EQ(Told(), "S");
  }
}

TEST_F(GateTest, APauseWhereMoreLivesEndsNoTurn) {
  Turn(kIdleMs);
  for (int i = 0; i < 4; ++i) {
    RunOps(5);
    EXPECT_EQ(Told(), "");
    Pause(kPause);
    EXPECT_EQ(Told(), "E");
    live_ = MiB(18);
    OpsCome(5);
    live_ = MiB(16);
    gate_.StepEnds();
    Told();
    Turn(kIdleMs);
  }
}

TEST_F(GateTest, ClosesAtTheStepsEnd) {
  Quantum();
  gate_.StepEnds();
  RunOps(1);
  CloseAtStepEnd();
  RunOps(2);
  EXPECT_EQ(Told(), "");
  gate_.StepEnds();
  EXPECT_EQ(Told(), "S");
}

TEST_F(GateTest, BetweenStepsItClosesAtOnce) {
  Quantum();
  RunOps(2);
  gate_.StepEnds();
  CloseAtStepEnd();
  EXPECT_EQ(Told(), "S");
}

TEST_F(GateTest, WithoutKnownStepsItClosesSoonAndWhenIdle) {
  Quantum();
  gate_.Enter();
  CloseAtStepEnd();
  const absl::Time begin = absl::Now();
  while (absl::Now() - begin < absl::Milliseconds(110)) gate_.Poll();
  gate_.Poll();  // The thread may have slept behind the last one.
  EXPECT_EQ(Told(), "");
  gate_.Leave();
  EXPECT_EQ(Told(), "E");
  Quantum(/*idle_ms=*/1);
  while (Told().empty()) gate_.Poll();
}

TEST_F(GateTest, WhatOpsWaitInAQuantumsFirstTwoStepsIsItsStall) {
  Stall();
  const absl::Duration before = waits_.waited();
  Quantum();
  absl::Duration after;
  for (int step = 1; step <= 3; ++step) {
    gate_.Enter();
    Stall();
    gate_.Leave();
    gate_.StepEnds();
    if (step == 2) after = waits_.waited();
  }
  CloseNow();
  Stall();
  EXPECT_EQ(Told(), "E");
  EXPECT_GE(stalled_, absl::Milliseconds(4) - absl::Microseconds(1));
  EXPECT_LE(stalled_, after - before);
  Quantum();
  CloseNow();
  EXPECT_EQ(Told(), "E");
  EXPECT_EQ(stalled_, absl::ZeroDuration());
}

TEST_F(GateTest, ABrokenStreamOpensIt) {
  CloseNow();
  std::thread op([this] {
    gate_.Enter();
    gate_.Leave();
  });
  AwaitTold(2);
  gate_.Open();
  op.join();
  EXPECT_FALSE(gate_.gating());
  order_ = 0;
  CloseNow();
  EXPECT_NE(Told(), "");
}

// As one that waited for its device, whose stream broke.
TEST_F(GateTest, AnOrderIsRevokedUnlessAnotherHasCome) {
  CloseNow();
  Told();
  v1::Gate order;
  order.set_epoch(9);
  order.set_order_id(order_);
  CloseNow();
  gate_.Revoke(order);
  EXPECT_TRUE(gate_.closed());
  order.set_order_id(order_);
  gate_.Revoke(order);
  EXPECT_FALSE(gate_.closed());
  EXPECT_FALSE(gate_.gating());
}

TEST_F(GateTest, ManyThreadsNeverRunWhileItIsClosed) {
  std::atomic<bool> stop{false};
  std::atomic<bool> closed{false};
  std::atomic<int> wrong{0};
  Quantum();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        gate_.Enter();
        if (closed) ++wrong;
        gate_.Leave();
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    {
      absl::MutexLock lock(&mutex_);
      sent_.clear();
    }
    CloseNow();
    AwaitTold(1);
    closed = true;
    std::this_thread::yield();
    closed = false;
    Quantum();
  }
  stop = true;
  Free();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(gate_.gating());
}

}  // namespace
}  // namespace mets::client
