#include "common/device/faulty_driver.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/device/host/host_map_driver.h"
#include "common/device/host/host_pool_driver.h"

namespace mets {
namespace {

const absl::Status kError = absl::DataLossError("planned");

class FaultyDriverTest : public ::testing::Test {
 protected:
  static constexpr Bytes kSize = MiB(1);

  FaultPlan plan_;
  FaultyPoolDriver pool_{
      std::make_unique<HostPoolDriver>(HostPoolOptions{MiB(64)}), plan_};
  FaultyMapDriver map_{*HostMapDriver::Create(HostMapOptions()), plan_};
};

TEST_F(FaultyDriverTest, TheNthCallFailsAndOnlyThat) {
  ASSERT_TRUE(pool_.CreateChunk(kSize).ok());
  plan_.FailNth(DriverCall::kCreateChunk, 2, kError);
  EXPECT_TRUE(pool_.CreateChunk(kSize).ok());
  EXPECT_EQ(pool_.CreateChunk(kSize).status(), kError);
  EXPECT_TRUE(pool_.CreateChunk(kSize).ok());
  EXPECT_EQ(plan_.failures(DriverCall::kCreateChunk), 1);
  EXPECT_EQ(plan_.failures(DriverCall::kMap), 0);
}

TEST_F(FaultyDriverTest, AlwaysLastsUntilItIsCleared) {
  plan_.FailAlways(DriverCall::kReserveRange, kError);
  EXPECT_EQ(map_.ReserveRange(kSize).status(), kError);
  EXPECT_EQ(map_.ReserveRange(kSize).status(), kError);
  plan_.Clear();
  EXPECT_TRUE(map_.ReserveRange(kSize).ok());
}

TEST_F(FaultyDriverTest, EveryMapCallCanFailAndChangesNothing) {
  const ChunkHandle chunk = *map_.ImportChunk(*pool_.CreateChunk(kSize), kSize);
  const ExtentHandle extent =
      *map_.RegisterExtent(*pool_.CreateExtent(kSize), kSize);
  const std::vector<ExtentPiece> slot = {{extent, Bytes(), kSize}};
  char* range = *map_.ReserveRange(kSize);
  const StreamHandle host = StreamHandle::kHostOrder;
  const auto fail_next = [this](DriverCall call) {
    plan_.FailNth(call, 1, kError);
  };
  fail_next(DriverCall::kMap);
  EXPECT_EQ(map_.Map(range, {chunk}), kError);
  ASSERT_TRUE(map_.Map(range, {chunk}).ok());
  range[5] = 17;
  fail_next(DriverCall::kBlockAccess);
  EXPECT_EQ(map_.BlockAccess(range, {chunk}), kError);
  EXPECT_EQ(range[5], 17);
  ASSERT_TRUE(map_.BlockAccess(range, {chunk}).ok());
  fail_next(DriverCall::kAllowAccess);
  EXPECT_EQ(map_.AllowAccess(range, {chunk}), kError);
  fail_next(DriverCall::kCopyOut);
  EXPECT_EQ(map_.CopyOut(range, {chunk}, slot, kSize, host).status(), kError);
  ASSERT_TRUE(map_.CopyOut(range, {chunk}, slot, kSize, host).ok());
  fail_next(DriverCall::kUnmap);
  EXPECT_EQ(map_.Unmap(range, {chunk}), kError);
  ASSERT_TRUE(map_.Unmap(range, {chunk}).ok());
  fail_next(DriverCall::kCopyIn);
  EXPECT_EQ(map_.CopyIn(range, {chunk}, slot, kSize, host).status(), kError);
  fail_next(DriverCall::kCopyInOnStream);
  EXPECT_EQ(map_.CopyIn(range, {chunk}, slot, kSize, host).status(), kError);
  ASSERT_TRUE(map_.CopyIn(range, {chunk}, slot, kSize, host).ok());
  EXPECT_EQ(range[5], 17);
  ASSERT_TRUE(map_.Unmap(range, {chunk}).ok());
}

TEST_F(FaultyDriverTest, ErrorOnAStreamComesFromTheFence) {
  const ChunkHandle chunk = *map_.ImportChunk(*pool_.CreateChunk(kSize), kSize);
  const ExtentHandle extent =
      *map_.RegisterExtent(*pool_.CreateExtent(kSize), kSize);
  const std::vector<ExtentPiece> slot = {{extent, Bytes(), kSize}};
  char* range = *map_.ReserveRange(kSize);
  const StreamHandle stream = *map_.CreateStream();
  plan_.FailNth(DriverCall::kCopyInOnStream, 1, kError);
  const Fence fence = *map_.CopyIn(range, {chunk}, slot, kSize, stream);
  EXPECT_EQ(map_.Wait(fence), kError);
  EXPECT_EQ(map_.Poll(fence).status(), kError);
  ASSERT_TRUE(map_.Map(range, {chunk}).ok()) << "nothing was mapped";
  ASSERT_TRUE(map_.Unmap(range, {chunk}).ok());
  map_.DestroyStream(stream);
}

}  // namespace
}  // namespace mets
