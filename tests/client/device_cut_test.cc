// A planned step whose device keeps mappings: its chunks are exchanged for such
// as it needs.
#include <gtest/gtest.h>

#include <vector>

#include "tests/client/device_plan_fixture.h"

namespace mets::client {
namespace {

class DeviceCutTest : public DevicePlanTest {
 protected:
  explicit DeviceCutTest(bool keeps_mappings = true)
      : DevicePlanTest(keeps_mappings) {}

  static constexpr int64_t kSmallest = 64 << 10, kLargest = 16 << 20;

  // 300 of the smallest chunks, few of which the step needs, and 100 of 4 MiB.
  void Scatter() {
    std::vector<char*> buffers;
    for (int i = 0; i < 100; ++i) {
      buffers.push_back(Alloc(MiB(4) + KiB(192)));
    }
    for (char* buffer : buffers) device_->Free(buffer);
  }
  int ExchangeAll() {
    int count = 0;
    while (device_->ExchangeChunks()) ++count;
    return count;
  }
};

TEST_F(DeviceCutTest, SmallChunksThatTheStepDoesNotNeedGoForLargeOnes) {
  Scatter();
  const Bytes used = uplink_.used();
  const ChunkCounts before = uplink_.held_counts();
  EXPECT_EQ(ExchangeAll(), 0);
  PlanActivation(3, 5);
  Follow();
  StepWithAbsence(3, 5);
  EXPECT_GT(ExchangeAll(), 0);
  const ChunkCounts after = uplink_.held_counts();
  EXPECT_GE(before.at(kSmallest), 300);
  EXPECT_LT(after.at(kSmallest), before.at(kSmallest) - 200);
  EXPECT_EQ(before.count(kLargest), 0u);
  EXPECT_GE(after.at(kLargest), 20);
  EXPECT_EQ(uplink_.used(), used);
  for (int i = 0; i < 3; ++i) StepWithAbsence(3, 5);
  EXPECT_EQ(ExchangeAll(), 0);
  EXPECT_EQ(uplink_.used(), used);
}

TEST_F(DeviceCutTest, AbsencesThatAreNotOfTheStepCountForNothing) {
  PlanActivation(3, 5);
  for (int field = 0; field < 3; ++field) {
    v1::PlanAbsence& absence = *plan_.add_absences();
    absence.set_buffer(field == 0 ? 1u << 30 : 0);
    absence.set_evict_after(field == 1 ? 1u << 30 : 0);
    absence.set_restore_at(field == 2 ? 1u << 30 : 0);
  }
  Follow();
  for (int i = 0; i < 3; ++i) StepWithAbsence(3, 5);
}

TEST_F(DeviceCutTest, WithoutMemoryForOthersTheyAreTheDaemons) {
  Scatter();
  PlanActivation(3, 5);
  Follow();
  const Bytes used = uplink_.used();
  uplink_.set_pool(Bytes());
  EXPECT_EQ(ExchangeAll(), 0);
  EXPECT_LT(uplink_.used(), used);
  uplink_.set_pool(GiB(1));
  for (int i = 0; i < 3; ++i) StepWithAbsence(3, 5);
}

TEST_F(DeviceCutTest, NothingIsExchangedOnceThePlanHasEnded) {
  Scatter();
  PlanActivation(3, 5);
  Follow();
  device_->EndPlan();
  EXPECT_EQ(ExchangeAll(), 0);
}

class DeviceWithoutCutTest : public DeviceCutTest {
 protected:
  DeviceWithoutCutTest() : DeviceCutTest(/*keeps_mappings=*/false) {}
};

TEST_F(DeviceWithoutCutTest, WhereMappingIsCheapChunksStayAsTheyAre) {
  Scatter();
  PlanActivation(3, 5);
  Follow();
  EXPECT_EQ(ExchangeAll(), 0);
}

}  // namespace
}  // namespace mets::client
