#include "common/device/cuda/cuda_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/device/cuda/cuda_device.h"
#include "tests/common/device/cuda/fake_cuda.h"

namespace mets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

class CudaApiTest : public ::testing::Test {
 protected:
  CudaApiTest() { fake_cuda::Reset(); }
  ~CudaApiTest() override { fake_cuda::Reset(); }
};

TEST_F(CudaApiTest, ResultsBecomeStatusesWithTheCallsName) {
  EXPECT_TRUE(CudaStatus(CUDA_SUCCESS, "cuMemMap").ok());
  const absl::Status full = CudaStatus(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_EQ(Text(full), "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_TRUE(
      absl::IsInvalidArgument(CudaStatus(CUDA_ERROR_INVALID_VALUE, "f")));
  EXPECT_TRUE(absl::IsNotFound(CudaStatus(CUDA_ERROR_NO_DEVICE, "f")));
  EXPECT_TRUE(absl::IsUnimplemented(CudaStatus(CUDA_ERROR_NOT_SUPPORTED, "f")));
  EXPECT_TRUE(
      absl::IsPermissionDenied(CudaStatus(CUDA_ERROR_NOT_PERMITTED, "f")));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CudaStatus(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "f")));
  EXPECT_TRUE(absl::IsInternal(CudaStatus(CUDA_ERROR_ILLEGAL_ADDRESS, "f")));
}

TEST_F(CudaApiTest, UnknownResultIsShownByNumber) {
  const absl::Status status = CudaStatus(CUDA_ERROR_UNKNOWN, "cuInit");
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(Text(status), "cuInit: CUDA error 999");
}

TEST_F(CudaApiTest, FunctionOfTheTableNamesItself) {
  fake_cuda::Fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
  const absl::Status status = fake_cuda::Api().cuMemHostRegister(nullptr, 0, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Text(status), HasSubstr("cuMemHostRegister_v2"));
}

TEST_F(CudaApiTest, MachineWithoutADriverIsSaidSo) {
  CudaApi api;
  const absl::Status status = LoadCudaFunctions("libcuda-none.so.1", &api);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("libcuda-none")));
}

TEST_F(CudaApiTest, DriverWithoutAFunctionIsTooOld) {
  CudaApi api;
  const absl::Status status = LoadCudaFunctions("libm.so.6", &api);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("too old"), HasSubstr("cuMemCreate")));
}

TEST_F(CudaApiTest, DevicesAreKnownByUuid) {
  const auto devices = CudaDevices(fake_cuda::Api());
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front().id, fake_cuda::kDevice);
  EXPECT_EQ(devices->front().total, GiB(1));
  EXPECT_TRUE(FindCudaDevice(fake_cuda::Api(), fake_cuda::kDevice).ok());
}

TEST_F(CudaApiTest, UnknownDeviceIsRefusedWithTheKnownOnes) {
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  const absl::Status status =
      FindCudaDevice(fake_cuda::Api(), "GPU-other").status();
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("GPU-other"), HasSubstr(fake_cuda::kDevice),
                    HasSubstr("CUDA_VISIBLE_DEVICES is '3'")));
}

TEST_F(CudaApiTest, DeviceThatCannotShareMemoryIsRefused) {
  fake_cuda::Fail("cuMemGetAllocationGranularity", CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(absl::IsUnimplemented(CudaDevices(fake_cuda::Api()).status()));
}

}  // namespace
}  // namespace mets
