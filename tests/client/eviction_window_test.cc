#include "client/src/eviction_window.h"

#include <utility>
#include <vector>

#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

class EvictionWindowTest : public DeviceFixture {
 protected:
  EvictionWindowTest() : DeviceFixture(/*gated=*/false) {}

  EvictionWindow::Done Note() {
    return [this](int number, const Device::EvictResult& result) {
      ended_.emplace_back(number, result.outcome);
    };
  }
  void Begin(EvictionWindow& window, int number, char* buffer,
             const v1::Slot& slot) {
    window.Begin(number, Info(buffer).buffer_id, slot);
  }
  // In an op, which waits for it where needed.
  void ExpectHolds(char* address, char value) {
    const mets_access access = {address, 0, METS_READ};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    EXPECT_TRUE(Holds(address, MiB(2), value));
    device_->EndOp(op);
  }

  std::vector<std::pair<int, v1::BufferOutcome>> ended_;
  char* a_ = Alloc(MiB(2), 'a');
  char* b_ = Alloc(MiB(2), 'b');
};

using Ended = std::vector<std::pair<int, v1::BufferOutcome>>;

TEST_F(EvictionWindowTest, SeveralAreUnderWayAndEndInTheirOrder) {
  EvictionWindow window(*device_, 1, Note());
  Begin(window, 5, a_, SlotOf(a_));
  Begin(window, 7, b_, SlotOf(b_));
  EXPECT_EQ(window.bytes(), MiB(4));
  EXPECT_TRUE(ended_.empty());
  window.FinishOne();
  EXPECT_EQ(ended_, (Ended{{5, v1::BUFFER_OUTCOME_DONE}}));
  // Given back while the other one is on its way.
  EXPECT_EQ(uplink_.used(), MiB(2));
  window.FinishOne();
  EXPECT_EQ(uplink_.used(), Bytes());
  ExpectHolds(a_, 'a');
  ExpectHolds(b_, 'b');
}

TEST_F(EvictionWindowTest, AllHaveEndedWhenItGoes) {
  std::vector<char*> many;
  for (int i = 0; i < 24; ++i) many.push_back(Alloc(MiB(2), i));
  {
    EvictionWindow window(*device_, 1, Note());
    for (int i = 0; i < 24; ++i) {
      Begin(window, i, many[i], SlotOf(many[i]));
      EXPECT_LE(window.bytes(), MiB(32));
    }
    EXPECT_LT(ended_.size(), 24u);
  }
  EXPECT_EQ(ended_.size(), 24u);
  for (int i = 0; i < 24; ++i) ExpectHolds(many[i], i);
}

TEST_F(EvictionWindowTest, TwoBuffersDoNotLeaveToOneSlot) {
  {
    EvictionWindow window(*device_, 1, Note());
    Begin(window, 0, a_, SlotOf(a_));
    Begin(window, 1, b_, SlotOf(a_));
  }
  EXPECT_EQ(ended_, (Ended{{1, v1::BUFFER_OUTCOME_SKIPPED},
                           {0, v1::BUFFER_OUTCOME_DONE}}));
  ExpectHolds(a_, 'a');
}

TEST_F(EvictionWindowTest, ASlotWhoseBufferStayedServesAnother) {
  {
    EvictionWindow window(*device_, 1, Note());
    Begin(window, 0, a_, SlotOf(a_));
    ExpectHolds(a_, 'a');
    Begin(window, 1, b_, SlotOf(a_));
  }
  EXPECT_EQ(ended_, (Ended{{0, v1::BUFFER_OUTCOME_SKIPPED},
                           {1, v1::BUFFER_OUTCOME_DONE}}));
  EXPECT_TRUE(Resident(a_));
  ExpectHolds(b_, 'b');
}

// The first eviction must not end the second, whose bytes are others.
TEST_F(EvictionWindowTest, WhatWasCalledOffDoesNotEndALaterEviction) {
  const uint64_t id = Info(a_).buffer_id;
  Device::EvictResult result;
  auto first = device_->BeginEviction(id, SlotOf(a_), &result);
  ASSERT_TRUE(first.has_value());
  const mets_access access = {a_, 0, METS_WRITE};
  Op* op = nullptr;
  METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
  std::memset(a_, 'n', MiB(2).count());
  device_->EndOp(op);
  const v1::Slot other = uplink_.NewSlot(*device_, MiB(2));
  auto second = device_->BeginEviction(id, other, &result);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(device_->FinishEviction(*std::move(first), 1).outcome,
            v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_TRUE(Resident(a_));
  EXPECT_EQ(device_->FinishEviction(*std::move(second), 1).outcome,
            v1::BUFFER_OUTCOME_DONE);
  ExpectHolds(a_, 'n');
}

TEST_F(EvictionWindowTest, WhatIsFreedOnItsWayIsSaidToBe) {
  {
    EvictionWindow window(*device_, 1, Note());
    Begin(window, 0, a_, SlotOf(a_));
    device_->Free(a_);
  }
  EXPECT_EQ(ended_, (Ended{{0, v1::BUFFER_OUTCOME_FREED}}));
}

}  // namespace
}  // namespace mets::client
