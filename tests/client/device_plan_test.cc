// What a plan moves, when, and where to.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "absl/time/clock.h"
#include "tests/client/device_plan_fixture.h"

namespace mets::client {
namespace {

TEST_F(DevicePlanTest, BuffersLeaveAndComeBackAtTheirOps) {
  const std::set<int> layers = {3, 4, 20};
  for (int layer : layers) PlanActivation(layer, 5);
  Follow();
  EXPECT_TRUE(device_->tight());
  for (int i = 0; i < 3; ++i) {
    Step([&](int op) {
      for (int layer : layers) {
        char* activation = activations_[layer];
        if (op == layer + 1) AwaitResident(activation, false);
        if (op > layer + 1 && op < Backward(layer) - 5) {
          EXPECT_FALSE(Resident(activation)) << op;
        }
        if (op == Backward(layer) - 5) AwaitResident(activation, true);
      }
      if (op == kLayers) {
        for (int i = 0; i < kLayers; ++i) {
          EXPECT_EQ(Resident(activations_[i]), layers.count(i) == 0) << i;
        }
      }
    });
  }
  EXPECT_EQ(Stats().evicted_bytes_total, Stats().restored_bytes_total);
  EXPECT_EQ(Stats().evicted_bytes_total,
            3u * (SizeOf(3) + SizeOf(4) + SizeOf(20)).count());
}

TEST_F(DevicePlanTest, ChunksOfWhatLeavesStay) {
  PlanActivation(3, 5);
  Follow();
  Bytes used;
  uint64_t cached = 0;
  Step([&](int op) {
    if (op == 3) {
      used = uplink_.used();
      cached = Stats().cached_bytes;
    }
    if (op != 4) return;
    AwaitResident(activations_[3], false);
    EXPECT_EQ(uplink_.used(), used);
    EXPECT_EQ(Stats().cached_bytes,
              cached - SizeOf(4).count() + SizeOf(3).count());
    EXPECT_EQ(Stats().swapped_bytes, static_cast<uint64_t>(SizeOf(3).count()));
  });
}

TEST_F(DevicePlanTest, PersistentBuffersComeBackForTheNextStep) {
  // The weight is written by its backward op, and read again in the next step.
  AddAbsence(LogicalOf(20, true), 20, Backward(20), 10, 20);
  Follow();
  Step();
  for (int i = 0; i < 2; ++i) {
    AwaitResident(weights_[20], false);
    Step([&](int op) {
      if (op == 10) AwaitResident(weights_[20], true);
    });
  }
}

TEST_F(DevicePlanTest, ASlotIsNotUsedWhileBytesOfTheStepBeforeLieInIt) {
  PlanActivation(3, 5);
  Follow();
  kept_ = 3;
  const char value = 3 + step_;
  StepWithAbsence(3, 5);
  char* kept = activations_[3];
  // Clean in the plan's slot.
  ASSERT_EQ(EvictByOrder(kept, plan_.slots(0).slot()), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 1u);
  kept_ = -1;
  const uint64_t evicted = Stats().evicted_bytes_total;
  Step();
  ASSERT_TRUE(device_->FollowPlan(v1::Plan()).ok());
  EXPECT_EQ(Stats().evicted_bytes_total, evicted);
  Op* op = Begin({{kept, 0, METS_READ}});
  EXPECT_TRUE(Holds(kept, SizeOf(3), value));
  device_->EndOp(op);
}

TEST_F(DevicePlanTest, WhoLosesItsSlotIsCopiedWhenItLeaves) {
  PlanActivation(3, 5);
  Follow();
  kept_ = 3;
  const char value = 3 + step_;
  StepWithAbsence(3, 5);
  char* kept = activations_[3];
  kept_ = -1;
  Step([&](int op) {
    if (op != 10) return;
    // The slot has its successor's bytes.
    AwaitResident(activations_[3], false);
    EXPECT_EQ(EvictByOrder(kept, plan_.slots(0).slot()),
              v1::BUFFER_OUTCOME_SKIPPED);
    EXPECT_EQ(EvictByOrder(kept, uplink_.NewSlot(*device_, SizeOf(3))),
              v1::BUFFER_OUTCOME_DONE);
  });
  EXPECT_EQ(Stats().clean_evictions_total, 0u);
  Op* op = Begin({{kept, 0, METS_READ}});
  EXPECT_TRUE(Holds(kept, SizeOf(3), value));
  device_->EndOp(op);
}

TEST_F(DevicePlanTest, ARangeStaysMappedForTheCopyOfAnEvictionCalledOff) {
  char* weight = weights_[3];
  const uint64_t id = Info(weight).buffer_id;
  const v1::Slot slot = uplink_.NewSlot(*device_, SizeOf(3));
  driver_->HoldNext();
  v1::BufferOutcome first, second;
  std::thread plan(
      [&] { first = device_->Evict(id, slot, std::nullopt).outcome; });
  driver_->AwaitCopy();
  device_->EndOp(Begin({{weight, 0, METS_READ}}));  // Calls it off.
  std::atomic<bool> left{false};
  std::thread order([&] {
    second = device_->Evict(id, slot, std::nullopt).outcome;
    left = true;
  });
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_FALSE(left);
  driver_->Release();
  plan.join();
  order.join();
  EXPECT_EQ(first, v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_EQ(second, v1::BUFFER_OUTCOME_DONE);
  device_->EndOp(Begin({{weight, 0, METS_READ}}));
  EXPECT_TRUE(Holds(weight, SizeOf(3), step_));
}

TEST_F(DevicePlanTest, HeldAndPinnedBuffersStay) {
  PlanActivation(3, 5);
  PlanActivation(5, 5);
  Follow();
  Step([&](int op) {
    if (op == 3) {
      void* held = activations_[3];
      ASSERT_TRUE(device_->SetMobility(held, Mobility::kHeld).ok());
    }
    if (op != 5) return;
    // Another op, which has begun before the last one that reads it.
    Op* other = Begin({{activations_[5], 0, METS_READ}});
    Forward(6);
    ASSERT_TRUE(device_->FollowPlan(v1::Plan()).ok());
    EXPECT_TRUE(Resident(activations_[3]));
    EXPECT_TRUE(Resident(activations_[5]));
    device_->EndOp(other);
    device_->Free(activations_[6]);
  });
  EXPECT_EQ(Stats().evicted_bytes_total, 0u);
}

// Or what has just come back would be the next to leave.
TEST_F(DevicePlanTest, WhatComesBackCountsAsUsed) {
  PlanActivation(3, 5);
  Follow();
  Step([&](int op) {
    if (op == 4) AwaitResident(activations_[3], false);
    if (op == Backward(3) - 6) absl::SleepFor(absl::Milliseconds(100));
    if (op != Backward(3) - 5) return;
    AwaitResident(activations_[3], true);
    device_->ReportChanges(ReportScope::kAll);
    std::map<uint64_t, uint32_t> idle;  // As reported last, in milliseconds.
    for (const v1::ClientMessage& message : uplink_.TakeSent()) {
      for (const auto& report : message.buffer_changes().buffers()) {
        idle[report.buffer_id()] = report.idle_ms();
      }
    }
    // Ops that followed one another have used both before.
    const uint64_t back = Info(activations_[3]).buffer_id;
    const uint64_t other = Info(activations_[2]).buffer_id;
    ASSERT_EQ(idle.count(back) + idle.count(other), 2);
    EXPECT_LT(idle[back] + 50, idle[other]);
  });
}

}  // namespace
}  // namespace mets::client
