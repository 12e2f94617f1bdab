// How a plan begins and ends.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "client/src/order_worker.h"
#include "tests/client/device_plan_fixture.h"

namespace mets::client {
namespace {

TEST_F(DevicePlanTest, APlanForAnotherStepIsRefused) {
  PlanActivation(3, 5);
  Follow();
  plan_.set_step_signature(plan_.step_signature() + 1);
  EXPECT_FALSE(device_->FollowPlan(plan_).ok());
  EXPECT_FALSE(device_->tight());
  Step();
  EXPECT_EQ(Stats().evicted_bytes_total, 0u);
}

TEST_F(DevicePlanTest, APlansEndWaitsForItsCopyAndReportsBeforeTheAnswer) {
  PlanActivation(3, 5);
  PlanActivation(4, 5);
  DescriptorInbox inbox;
  const auto devices = [this] { return std::vector<Device*>{device_.get()}; };
  ExtentRegistrar extents(inbox, devices);
  OrderWorker worker(inbox, extents, uplink_, devices);
  Follow();
  Step([&](int op) {
    if (op == 0) driver_->set_may_end(false);
    if (op != 10) return;
    driver_->AwaitCopy();
    uplink_.TakeSent();
    v1::DaemonMessage order;
    order.mutable_plan()->set_device("host0");
    order.mutable_plan()->set_order_id(7);
    order.mutable_plan()->set_epoch(1);
    worker.Post(std::move(order));
    while (device_->tight()) std::this_thread::yield();
    driver_->set_may_end(true);
    std::vector<v1::ClientMessage> sent;
    while (sent.empty() || !sent.back().has_order_done()) {
      for (v1::ClientMessage& message : uplink_.TakeSent()) {
        sent.push_back(std::move(message));
      }
    }
    EXPECT_EQ(driver_->copies(), 0);
    EXPECT_EQ(sent.back().order_done().order_id(), 7u);
    EXPECT_EQ(sent.back().order_done().error(), "");
    ASSERT_GE(sent.size(), 2u);
    int reported = 0;
    for (const v1::BufferReport& buffer :
         sent[sent.size() - 2].buffer_changes().buffers()) {
      if (buffer.buffer_id() != Info(activations_[3]).buffer_id) continue;
      ++reported;
      EXPECT_EQ(buffer.state(), v1::BUFFER_STATE_SWAPPED);
      EXPECT_EQ(buffer.slot_id(), plan_.slots(0).slot().slot_id());
    }
    EXPECT_EQ(reported, 1);
    // The other one was still to leave.
    EXPECT_TRUE(Resident(activations_[4]));
  });
}

TEST_F(DevicePlanTest, PlansAreAnsweredOnceWithWhatIsWrong) {
  PlanActivation(3, 5);
  DescriptorInbox inbox;
  const auto devices = [this] { return std::vector<Device*>{device_.get()}; };
  ExtentRegistrar extents(inbox, devices);
  OrderWorker worker(inbox, extents, uplink_, devices);
  const auto answer = [&](const v1::Plan& plan) {
    uplink_.TakeSent();
    v1::DaemonMessage order;
    *order.mutable_plan() = plan;
    worker.Post(std::move(order));
    v1::DaemonMessage next;
    next.mutable_trim()->set_device("host0");
    next.mutable_trim()->set_order_id(99);
    worker.Post(std::move(next));
    std::vector<v1::OrderDone> answers;
    while (answers.empty() || answers.back().order_id() != 99) {
      for (v1::ClientMessage& message : uplink_.TakeSent()) {
        if (message.has_order_done()) answers.push_back(message.order_done());
      }
    }
    EXPECT_EQ(answers.size(), 2u);
    return answers[0].error();
  };
  EXPECT_EQ(answer(plan_), "");
  EXPECT_TRUE(device_->tight());
  v1::Plan unknown_extent = plan_;
  unknown_extent.mutable_slots(0)
      ->mutable_slot()
      ->mutable_pieces(0)
      ->set_extent_id(5);
  EXPECT_NE(answer(unknown_extent), "");
  EXPECT_FALSE(device_->tight());
  EXPECT_EQ(answer(plan_), "");
  v1::Plan other_step = plan_;
  other_step.set_step_signature(1);
  EXPECT_NE(answer(other_step), "");
  EXPECT_FALSE(device_->tight());
  v1::Plan other_device = plan_;
  other_device.set_device("gpu7");
  EXPECT_NE(answer(other_device), "");
}

TEST_F(DevicePlanTest, ABrokenStreamEndsThePlan) {
  PlanActivation(3, 5);
  PlanActivation(4, 5);
  Follow();
  Step([&](int op) {
    if (op == 0) driver_->set_may_end(false);
    if (op != 10) return;
    driver_->AwaitCopy();
    std::thread session([&] {
      device_->Mute();
      EXPECT_EQ(driver_->copies(), 0);
    });
    while (device_->tight()) std::this_thread::yield();
    driver_->set_may_end(true);
    session.join();
    EXPECT_FALSE(Resident(activations_[3]));
    EXPECT_TRUE(Resident(activations_[4]));
    // An order that comes too late.
    EXPECT_FALSE(device_->FollowPlan(plan_).ok());
    uplink_.set_epoch(2);
    device_->BeginEpoch(1);
    device_->SendSnapshot(true);
    EXPECT_FALSE(Resident(activations_[3]));
  });
  const uint64_t evicted = Stats().evicted_bytes_total;
  Step();
  EXPECT_EQ(Stats().evicted_bytes_total, evicted);
}

}  // namespace
}  // namespace mets::client
