#include "client/loader/cuda_device_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace mets {
namespace {

using ::testing::HasSubstr;

TEST(CudaDeviceIdTest, IdsAreWrittenAsTheDaemonWritesThem) {
  std::string id, error;
  ASSERT_TRUE(CudaDeviceId(FAKE_LIBCUDA, 0, &id, &error)) << error;
  EXPECT_EQ(id, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
}

TEST(CudaDeviceIdTest, AMigInstanceHasItsOwnId) {
  std::string id, error;
  ASSERT_TRUE(CudaDeviceId(FAKE_LIBCUDA, 1, &id, &error)) << error;
  EXPECT_EQ(id, "MIG-10111213-1415-1617-1819-1a1b1c1d1e1f");
}

TEST(CudaDeviceIdTest, OrdinalsThatAreNotThereAreNamed) {
  std::string id, error;
  setenv("FAKE_CUDA_DEVICES", "1", 1);
  EXPECT_FALSE(CudaDeviceId(FAKE_LIBCUDA, 1, &id, &error));
  EXPECT_THAT(error, HasSubstr("cuda:1"));
  EXPECT_FALSE(CudaDeviceId(FAKE_LIBCUDA, -1, &id, &error));
  unsetenv("FAKE_CUDA_DEVICES");
}

TEST(CudaDeviceIdTest, AMachineWithoutADriverIsNamed) {
  std::string id, error;
  EXPECT_FALSE(CudaDeviceId("libno_such_driver.so.1", 0, &id, &error));
  EXPECT_THAT(error, HasSubstr("no NVIDIA driver"));
}

TEST(CudaDeviceIdTest, ADriverWithoutTheFunctionsIsTooOld) {
  std::string id, error;
  EXPECT_FALSE(CudaDeviceId("libm.so.6", 0, &id, &error));
  EXPECT_THAT(error, HasSubstr("too old"));
}

}  // namespace
}  // namespace mets
