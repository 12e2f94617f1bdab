#include "common/device/cuda/cuda_pool_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/common/device/cuda/fake_cuda.h"
#include "tests/contract/backends.h"

namespace mets {
namespace {

using ::testing::HasSubstr;

// What every PoolDriver does is in the contract suites.
class CudaPoolDriverTest : public ::testing::Test {
 protected:
  CudaPoolDriverTest()
      : fds_before_(CountOpenFds()),
        driver_(fake_cuda::Api(), CudaDevices(fake_cuda::Api())->front(),
                Options()) {
    fake_cuda::Reset();
  }
  void TearDown() override {
    EXPECT_EQ(fake_cuda::Left(), "");
    EXPECT_EQ(CountOpenFds(), fds_before_);
    fake_cuda::Reset();
  }
  CudaPoolOptions Options() {
    CudaPoolOptions options;
    options.total = MiB(256);
    options.free_memory = [this](const std::string& uuid) {
      EXPECT_EQ(uuid, fake_cuda::kDevice);
      return free_;
    };
    options.bus_speed = [this](const std::string& uuid) {
      EXPECT_EQ(uuid, fake_cuda::kDevice);
      return bus_;
    };
    return options;
  }

  const int fds_before_;
  absl::StatusOr<Bytes> free_ = GiB(1);
  absl::StatusOr<double> bus_ = 55e9;
  CudaPoolDriver driver_;
};

TEST_F(CudaPoolDriverTest, DescriptorIsAllThatIsKeptOfAChunk) {
  absl::StatusOr<UniqueFd> chunk = driver_.CreateChunk(MiB(128));
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(fake_cuda::Left(), "");
  EXPECT_TRUE(driver_.ReleaseChunk(*std::move(chunk)).ok());
}

TEST_F(CudaPoolDriverTest, TheBusIsAsFastAsTheDriverSaysOrNotKnown) {
  EXPECT_EQ(driver_.info().bus_bytes_per_second, 55e9);
  bus_ = absl::FailedPreconditionError("no NVML");
  EXPECT_EQ(driver_.info().bus_bytes_per_second, 0);
}

TEST_F(CudaPoolDriverTest, NeedsNoContext) {
  absl::StatusOr<UniqueFd> chunk = driver_.CreateChunk(MiB(2));
  ASSERT_TRUE(chunk.ok());
  absl::StatusOr<UniqueFd> adopted =
      driver_.AdoptChunk(UniqueFd(dup(chunk->get())), MiB(2));
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_TRUE(driver_.ReleaseChunk(*std::move(adopted)).ok());
  EXPECT_TRUE(driver_.ReleaseChunk(*std::move(chunk)).ok());
  EXPECT_EQ(fake_cuda::Calls("cuDevicePrimaryCtxRetain"), 0);
  EXPECT_EQ(fake_cuda::Calls("cuCtxPushCurrent"), 0);
}

TEST_F(CudaPoolDriverTest, FullDeviceIsSaidWithWhatToLookFor) {
  fake_cuda::Fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  const absl::Status status = driver_.CreateChunk(MiB(2)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is another program on the device?"));
}

TEST_F(CudaPoolDriverTest, FailedExportLeavesNothing) {
  fake_cuda::Fail("cuMemExportToShareableHandle", CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(absl::IsUnimplemented(driver_.CreateChunk(MiB(128)).status()));
  EXPECT_EQ(*driver_.FreeBytes(), MiB(256)) << "not counted";
}

TEST_F(CudaPoolDriverTest, FreeIsWhatTheDeviceHasWhenThatIsLess) {
  free_ = MiB(77);
  EXPECT_EQ(*driver_.FreeBytes(), MiB(77));
  free_ = absl::FailedPreconditionError("no NVML");
  EXPECT_TRUE(absl::IsFailedPrecondition(driver_.FreeBytes().status()));
}

TEST_F(CudaPoolDriverTest, MemoryIsMadeForNetworkCardsWhereTheyCanUseIt) {
  CudaDevice device = CudaDevices(fake_cuda::Api())->front();
  EXPECT_TRUE(device.rdma);
  EXPECT_EQ(device.ChunkProperties().allocFlags.gpuDirectRDMACapable, 1);
  device.rdma = false;
  EXPECT_EQ(device.ChunkProperties().allocFlags.gpuDirectRDMACapable, 0);
}

}  // namespace
}  // namespace mets
