#include "common/device/slow_driver.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/device/host/host_map_driver.h"
#include "common/device/host/host_pool_driver.h"

namespace mets {
namespace {

// 64 MiB/s: 1 MiB takes 15.6 ms. Only lower bounds are checked.
class SlowDriverTest : public ::testing::Test {
 protected:
  static constexpr Bytes kSize = MiB(1);

  void SetUp() override {
    chunk_ = *map_.ImportChunk(*pool_.CreateChunk(kSize), kSize);
    range_ = *map_.ReserveRange(kSize);
    slot_ = {{*map_.RegisterExtent(*pool_.CreateExtent(kSize), kSize), Bytes(),
              kSize}};
    ASSERT_TRUE(map_.Map(range_, {chunk_}).ok());
  }
  absl::StatusOr<Fence> Out(StreamHandle stream) {
    return map_.CopyOut(range_, {chunk_}, slot_, kSize, stream);
  }

  HostPoolDriver pool_{HostPoolOptions{MiB(64)}};
  SlowMapDriver map_{*HostMapDriver::Create(HostMapOptions()),
                     BusSpeed{MiB(64), absl::Milliseconds(3)}};
  RealClock clock_;
  ChunkHandle chunk_;
  char* range_ = nullptr;
  std::vector<ExtentPiece> slot_;
};

TEST_F(SlowDriverTest, CopyTakesBandwidthAndLatency) {
  const absl::Time start = clock_.Now();
  ASSERT_TRUE(Out(StreamHandle::kHostOrder).ok());
  EXPECT_GE(clock_.Now() - start, absl::Microseconds(18600));
}

TEST_F(SlowDriverTest, StreamsShareTheBus) {
  const StreamHandle a = *map_.CreateStream();
  const StreamHandle b = *map_.CreateStream();
  const absl::Time start = clock_.Now();
  absl::StatusOr<Fence> first = Out(a);
  absl::StatusOr<Fence> second = Out(b);
  ASSERT_TRUE(map_.Wait(*first).ok());
  ASSERT_TRUE(map_.Wait(*second).ok());
  EXPECT_GE(clock_.Now() - start, absl::Microseconds(34200));
  map_.DestroyStream(a);
  map_.DestroyStream(b);
}

TEST_F(SlowDriverTest, StreamErrorComesFromTheFence) {
  const StreamHandle stream = *map_.CreateStream();
  slot_[0].size = Bytes(1);
  absl::StatusOr<Fence> fence = Out(stream);
  ASSERT_TRUE(fence.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(map_.Wait(*fence)));
  map_.DestroyStream(stream);
}

}  // namespace
}  // namespace mets
