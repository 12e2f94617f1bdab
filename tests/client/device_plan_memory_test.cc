// Who waits for whose memory while a plan is followed.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/client/device_plan_fixture.h"

namespace mets::client {
namespace {

TEST_F(DevicePlanTest, ARestoreWaitsUntilMemoryIsIdle) {
  // It comes back when the first backward op begins.
  PlanActivation(3, Backward(3) - kLayers);
  Follow();
  std::vector<char*> extras;
  Step([&](int op) {
    if (op == 4) AwaitResident(activations_[3], false);
    if (op == kLayers - 1) {
      uplink_.set_pool(uplink_.used());
      for (Bytes size : {SizeOf(3), SizeOf(0)}) {
        while (char* extra = TryAlloc(size)) extras.push_back(extra);
      }
      ASSERT_FALSE(extras.empty());
    }
    if (op != kLayers) return;
    EXPECT_FALSE(Resident(activations_[3]));
    device_->Free(extras[0]);
    AwaitResident(activations_[3], true);
    uplink_.set_pool(GiB(1));
    for (size_t i = 1; i < extras.size(); ++i) device_->Free(extras[i]);
  });
}

// 70 MiB of activations, in turn, in 52.
TEST_F(DevicePlanTest, AStepLargerThanTheDeviceRunsByThePlan) {
  Bytes weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights += SizeOf(layer);
    if (layer < kLayers - 6) PlanActivation(layer, 8);
  }
  // Gives its cache back, as it does in exchange for chunks of other sizes.
  uplink_.reclaim = [&](Bytes) {
    const Bytes used = uplink_.used();
    device_->Trim(GiB(1), 1);
    return uplink_.used() < used;
  };
  device_->Trim(GiB(1), 1);
  uplink_.set_pool(weights + MiB(52));
  Follow();
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_GT(Stats().evicted_bytes_total, 0u);
}

TEST_F(DevicePlanTest, AnOpWaitsForTheEvictionsThatAreDueBeforeItAsks) {
  PlanActivation(3, 5);
  Follow();
  Step([&](int op) {
    if (op == 3) driver_->set_may_end(false);
    if (op != 4) return;
    driver_->AwaitCopy();
    // All that is left but what the eviction brings.
    uplink_.set_pool(uplink_.used());
    device_->Trim(GiB(1), 1);
    uplink_.set_pool(uplink_.used());
    const int acquires = uplink_.acquires();
    std::thread other([&] {
      Op* op = Begin(
          {{weights_[0], 0, METS_READ},
           {nullptr, static_cast<uint64_t>(SizeOf(3).count()), METS_NEW}});
      char* made = Alloc(SizeOf(3));
      device_->EndOp(op);
      device_->Free(made);
    });
    const uint64_t weight = Info(weights_[0]).buffer_id;
    while (device_->Unwanted(weight)) std::this_thread::yield();
    driver_->set_may_end(true);
    other.join();
    EXPECT_EQ(uplink_.acquires(), acquires);
    uplink_.set_pool(GiB(1));
  });
}

// What the device had may have gone back to the daemon.
TEST_F(DevicePlanTest, AnOpAsksForWhatThePlanHasRoomFor) {
  PlanActivation(3, 5);
  plan_.set_budget_bytes(GiB(1).count());
  Follow();
  Step([&](int op) {
    if (op == 3) driver_->set_may_end(false);
    if (op != 4) return;
    driver_->AwaitCopy();
    device_->Trim(GiB(1), 1);
    Op* op_now =
        Begin({{weights_[0], 0, METS_READ},
               {nullptr, static_cast<uint64_t>(SizeOf(3).count()), METS_NEW}});
    char* made = Alloc(SizeOf(3));
    EXPECT_EQ(driver_->copies(), 1) << "the eviction has not ended";
    device_->EndOp(op_now);
    device_->Free(made);
    driver_->set_may_end(true);
  });
}

}  // namespace
}  // namespace mets::client
