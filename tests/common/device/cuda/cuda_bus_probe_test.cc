#include "common/device/cuda/cuda_bus_probe.h"

#include <gtest/gtest.h>

#include "tests/common/device/cuda/fake_cuda.h"

namespace mets {
namespace {

class CudaBusProbeTest : public ::testing::Test {
 protected:
  CudaBusProbeTest() { fake_cuda::Reset(); }
  ~CudaBusProbeTest() override {
    EXPECT_EQ(fake_cuda::Left(), "");
    fake_cuda::Reset();
  }
  absl::StatusOr<std::unique_ptr<CudaBusProbe>> Create() {
    const CudaApi& api = fake_cuda::Api();
    return CudaBusProbe::Create(api, CudaDevices(api)->front(), MiB(4));
  }
};

TEST_F(CudaBusProbeTest, CopiesSoOftenAndWaits) {
  auto probe = Create();
  ASSERT_TRUE(probe.ok()) << probe.status();
  const int out = fake_cuda::Calls("cuMemcpyDtoHAsync");
  const int in = fake_cuda::Calls("cuMemcpyHtoDAsync");
  fake_cuda::Delay();
  EXPECT_TRUE((*probe)->CopyOut(3).ok());
  EXPECT_TRUE((*probe)->CopyIn(2).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemcpyDtoHAsync"), out + 3);
  EXPECT_EQ(fake_cuda::Calls("cuMemcpyHtoDAsync"), in + 2);
}

TEST_F(CudaBusProbeTest, AllocatesAndFreesWithBothAllocators) {
  auto probe = Create();
  ASSERT_TRUE(probe.ok()) << probe.status();
  const int plain = fake_cuda::Calls("cuMemAlloc");
  EXPECT_TRUE((*probe)->AllocateAndFree(MiB(1), 5).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemAlloc"), plain + 5);
  const int pooled = fake_cuda::Calls("cuMemAllocAsync");
  EXPECT_TRUE((*probe)->AllocateFromPool(MiB(1), 5).ok());
  EXPECT_EQ(fake_cuda::Calls("cuMemAllocAsync"), pooled + 6);
}

TEST_F(CudaBusProbeTest, WithoutMemoryThereIsNoProbe) {
  fake_cuda::Fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(Create().status()));
  fake_cuda::Fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(Create().ok());
}

}  // namespace
}  // namespace mets
