#include "daemon/app/config/cuda_specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace mets::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CudaSpecsTest : public ::testing::Test {
 protected:
  CudaSpecsTest() {
    machine_.devices = [this] { return devices_; };
    machine_.free_bytes = [this](const std::string& id) { return free_[id]; };
  }
  absl::Status Settle(std::vector<DeviceSpec> devices) {
    config_.devices = std::move(devices);
    return SettleCudaDevices(machine_, held_, &config_);
  }
  static std::string Text(const absl::Status& status) {
    return std::string(status.message());
  }

  absl::StatusOr<std::vector<CudaDeviceInfo>> devices_ =
      std::vector<CudaDeviceInfo>{{"GPU-a", "Tesla", GiB(80)},
                                  {"GPU-b", "Tesla", GiB(80)}};
  std::map<std::string, absl::StatusOr<Bytes>> free_ = {{"GPU-a", GiB(79)},
                                                        {"GPU-b", GiB(20)}};
  std::map<std::string, Bytes> held_;
  CudaMachine machine_;
  Config config_;
};

TEST_F(CudaSpecsTest, DeviceIsChosenByNumberOrUuid) {
  ASSERT_TRUE(Settle({{"cuda", GiB(2), "1"}, {"cuda", GiB(3), "GPU-a"}}).ok());
  ASSERT_EQ(config_.devices.size(), 2u);
  EXPECT_EQ(config_.devices[0].id, "GPU-b");
  EXPECT_EQ(config_.devices[0].size, GiB(2));
  EXPECT_EQ(config_.devices[1].id, "GPU-a");
  EXPECT_EQ(config_.devices[1].size, GiB(3));
}

TEST_F(CudaSpecsTest, AllTakesEveryDeviceWithWhatIsFreeLessTheReserve) {
  ASSERT_TRUE(Settle({{"host", GiB(1)}, {"cuda", Bytes(), "all"}}).ok());
  ASSERT_EQ(config_.devices.size(), 3u);
  EXPECT_EQ(config_.devices[0].kind, "host");
  EXPECT_EQ(config_.devices[1].id, "GPU-a");
  EXPECT_EQ(config_.devices[1].size, GiB(79) - kCudaReserve);
  EXPECT_EQ(config_.devices[2].size, GiB(20) - kCudaReserve);
}

TEST_F(CudaSpecsTest, WhatJobsHoldAfterARestartBelongsToThePool) {
  held_ = {{"GPU-b", GiB(40)}, {"host0", GiB(7)}};
  ASSERT_TRUE(Settle({{"cuda", Bytes(), "1"}}).ok());
  EXPECT_EQ(config_.devices[0].size, GiB(60) - kCudaReserve);
}

TEST_F(CudaSpecsTest, UnknownDeviceIsRefusedWithTheKnownOnes) {
  for (const char* selector : {"2", "-1", "GPU-c", "first"}) {
    const absl::Status status = Settle({{"cuda", GiB(1), selector}});
    EXPECT_TRUE(absl::IsNotFound(status)) << selector;
    EXPECT_THAT(Text(status), AllOf(HasSubstr(std::string("cuda:") + selector),
                                    HasSubstr("GPU-a, GPU-b")));
  }
}

TEST_F(CudaSpecsTest, DeviceNamedTwiceIsRefused) {
  const absl::Status status =
      Settle({{"cuda", GiB(1), "0"}, {"cuda", GiB(1), "all"}});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Text(status), HasSubstr("GPU-a"));
}

TEST_F(CudaSpecsTest, MoreThanIsFreeIsRefusedWithTheNumbers) {
  absl::Status status = Settle({{"cuda", GiB(21), "1"}});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Text(status), AllOf(HasSubstr("20 GiB"), HasSubstr("21 GiB")));
  free_["GPU-b"] = GiB(2);
  status = Settle({{"cuda", Bytes(), "1"}});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Text(status), AllOf(HasSubstr("2 GiB"), HasSubstr("3 GiB")));
}

TEST_F(CudaSpecsTest, WithoutNvmlTheSizeMustBeGiven) {
  free_["GPU-a"] = absl::FailedPreconditionError("no NVML");
  EXPECT_TRUE(Settle({{"cuda", GiB(21), "0"}}).ok());
  const absl::Status status = Settle({{"cuda", Bytes(), "0"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Text(status), HasSubstr("give a size, such as cuda:GPU-a:16GiB"));
}

TEST_F(CudaSpecsTest, MachineWithoutAGpuIsSaidSoAndOnlyWhenOneIsNamed) {
  devices_ = absl::NotFoundError("this machine has no NVIDIA driver");
  EXPECT_TRUE(Settle({{"host", GiB(1)}}).ok());
  const absl::Status status = Settle({{"cuda", Bytes(), "all"}});
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr("cuda:all"), HasSubstr("no NVIDIA driver")));
  devices_ = std::vector<CudaDeviceInfo>();
  EXPECT_THAT(Text(Settle({{"cuda", Bytes(), "all"}})),
              HasSubstr("CUDA_VISIBLE_DEVICES"));
}

}  // namespace
}  // namespace mets::app
