#include "client/src/order_worker.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "tests/client/device_fixture.h"
#include "tests/client/first_descriptor.h"

namespace mets::client {
namespace {

constexpr Bytes kBufferSize = MiB(2);
constexpr uint64_t kLateExtent = 9;

// Two buffers; the slot of the first is in an extent that is not registered.
class OrderWorkerTest : public DeviceFixture {
 protected:
  OrderWorkerTest() : DeviceFixture(/*gated=*/false) {
    order_.set_device("host0");
    order_.set_order_id(7);
    for (char* buffer : {first_, second_}) {
      v1::EvictCandidate* candidate = order_.add_candidates();
      candidate->set_buffer_id(Info(buffer).buffer_id);
      *candidate->mutable_slot() = SlotOf(buffer);
    }
    order_.mutable_candidates(0)
        ->mutable_slot()
        ->mutable_pieces(0)
        ->set_extent_id(kLateExtent);
    uplink_.TakeSent();
  }

  void DeliverExtent() {
    inbox_.Put(FirstDescriptor(ipc::FdKind::kExtent, kLateExtent, MiB(128)));
  }
  // Follows the order, for so much: outcomes by candidate.
  std::vector<v1::BufferOutcome> Follow(Bytes target) {
    order_.set_target_bytes(target.count());
    v1::DaemonMessage message;
    *message.mutable_evict() = order_;
    worker_.Post(std::move(message));
    for (;;) {
      for (v1::ClientMessage& sent : uplink_.TakeSent()) {
        for (uint64_t chunk : sent.release().chunk_ids()) {
          released_.push_back(chunk);
        }
        if (!sent.has_order_done()) continue;
        EXPECT_EQ(sent.order_done().error(), "");
        std::vector<v1::BufferOutcome> outcomes;
        for (const v1::BufferResult& result : sent.order_done().results()) {
          outcomes.push_back(result.outcome());
        }
        return outcomes;
      }
      std::this_thread::yield();
    }
  }

  char* first_ = Alloc(kBufferSize, 1);
  char* second_ = Alloc(kBufferSize, 2);
  v1::Evict order_;
  std::vector<uint64_t> released_;  // Chunks.
  DescriptorInbox inbox_;
  ExtentRegistrar extents_{
      inbox_, [this] { return std::vector<Device*>{device_.get()}; }};
  OrderWorker worker_{inbox_, extents_, uplink_,
                      [this] { return std::vector<Device*>{device_.get()}; }};
};

using Outcomes = std::vector<v1::BufferOutcome>;

TEST_F(OrderWorkerTest, OnlyTheBufferWhoseExtentNeverCameStays) {
  EXPECT_EQ(Follow(kBufferSize * 2),
            (Outcomes{v1::BUFFER_OUTCOME_FAILED, v1::BUFFER_OUTCOME_DONE}));
  EXPECT_TRUE(Resident(first_));
  EXPECT_FALSE(Resident(second_));
}

TEST_F(OrderWorkerTest, ABufferWhoseExtentIsRegisteredLeavesFirst) {
  DeliverExtent();
  EXPECT_EQ(Follow(kBufferSize + Bytes(1)),
            (Outcomes{v1::BUFFER_OUTCOME_DONE, v1::BUFFER_OUTCOME_DONE}));
  ASSERT_FALSE(released_.empty());
  EXPECT_GT(released_.front(), released_.back()) << "numbered as they come";
}

TEST_F(OrderWorkerTest, ASpareDoesNotLeaveInsteadOfWhatWasChosen) {
  DeliverExtent();
  EXPECT_EQ(Follow(kBufferSize),
            (Outcomes{v1::BUFFER_OUTCOME_DONE, v1::BUFFER_OUTCOME_SKIPPED}));
}

TEST_F(OrderWorkerTest, WhatIsForgottenBeforeItsDescriptorComesDoesNotStay) {
  v1::DaemonMessage message;
  message.mutable_forget_chunks()->add_extent_ids(kLateExtent);
  message.mutable_forget_chunks()->set_fd_seq(1);
  worker_.Post(std::move(message));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(uplink_.TakeSent().empty());
  DeliverExtent();
  while (uplink_.TakeSent().empty()) std::this_thread::yield();
  EXPECT_TRUE(absl::IsNotFound(inbox_.CopyExtent(kLateExtent).status()));
}

}  // namespace
}  // namespace mets::client
