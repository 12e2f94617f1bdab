#include "daemon/app/config/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace mets::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    files_ = {dir_ + "/meminfo", dir_ + "/cgroup", dir_ + "/fs"};
    Write(files_.meminfo, "MemTotal: 9 kB\nMemAvailable:  1048576 kB\n");
    Write(files_.self_cgroup, "0::/\n");
  }
  ~MachineMemoryTest() override { std::filesystem::remove_all(dir_); }

  static void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }

  std::string dir_;
  MemoryFiles files_;
};

TEST_F(MachineMemoryTest, ReadsMemAvailable) {
  EXPECT_EQ(*AvailableMemory(files_), GiB(1));
}

TEST_F(MachineMemoryTest, TightestControlGroupCounts) {
  Write(files_.self_cgroup, "0::/a/b\n");
  Write(dir_ + "/fs/a/memory.max", "300000000\n");
  Write(dir_ + "/fs/a/memory.current", "100000000\n");
  Write(dir_ + "/fs/a/b/memory.max", "max\n");
  Write(dir_ + "/fs/a/b/memory.current", "1\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(200000000));
}

TEST_F(MachineMemoryTest, CachedFilesAreNotInTheWay) {
  Write(files_.self_cgroup, "0::/a\n");
  Write(dir_ + "/fs/a/memory.max", "300000000\n");
  Write(dir_ + "/fs/a/memory.current", "290000000\n");
  Write(dir_ + "/fs/a/memory.stat",
        "anon 30000000\ninactive_file 200000000\nactive_file 60000000\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(210000000));
}

TEST_F(MachineMemoryTest, TheRootThatAContainerSeesHasItsLimit) {
  Write(files_.self_cgroup, "0::/\n");
  Write(dir_ + "/fs/memory.max", "500000000\n");
  Write(dir_ + "/fs/memory.current", "100000000\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(400000000));
  Write(files_.self_cgroup, "0::/a\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(400000000));
}

TEST_F(MachineMemoryTest, ControlGroupsOfTheFirstVersionCountToo) {
  Write(files_.self_cgroup, "5:cpu,memory:/a/b\n4:pids:/c\n0::/\n");
  Write(dir_ + "/fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write(dir_ + "/fs/memory/memory.usage_in_bytes", "900000000\n");
  Write(dir_ + "/fs/memory/a/memory.limit_in_bytes", "300000000\n");
  Write(dir_ + "/fs/memory/a/memory.usage_in_bytes", "100000000\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(200000000));
  Write(dir_ + "/fs/memory/a/memory.stat", "total_inactive_file 30000000\n");
  EXPECT_EQ(*AvailableMemory(files_), Bytes(230000000));
  Write(files_.meminfo, "MemTotal: 2097152 kB\nMemAvailable: 9 kB\n");
  EXPECT_EQ(*TotalMemory(files_), Bytes(300000000));
  // A container sees the name of its group, but only the group itself.
  Write(files_.self_cgroup, "5:memory:/docker/1\n0::/\n");
  Write(dir_ + "/fs/memory/memory.limit_in_bytes", "400000000\n");
  EXPECT_EQ(*TotalMemory(files_), Bytes(400000000));
}

TEST_F(MachineMemoryTest, TotalIsWhatTheTightestControlGroupAllows) {
  Write(files_.meminfo, "MemTotal: 2097152 kB\nMemAvailable: 9 kB\n");
  EXPECT_EQ(*TotalMemory(files_), GiB(2));
  Write(files_.self_cgroup, "0::/a\n");
  Write(dir_ + "/fs/a/memory.max", "300000000\n");
  Write(dir_ + "/fs/a/memory.current", "100000000\n");
  EXPECT_EQ(*TotalMemory(files_), Bytes(300000000));
}

TEST_F(MachineMemoryTest, MissingFileIsAnError) {
  files_.meminfo = dir_ + "/none";
  EXPECT_FALSE(AvailableMemory(files_).ok());
}

TEST_F(MachineMemoryTest, DefaultsAreAQuarterAndTwiceThat) {
  Config config;
  ASSERT_TRUE(FitToMachine(GiB(8), "available", &config).ok());
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].kind, "host");
  EXPECT_EQ(config.devices[0].size, GiB(2));
  EXPECT_EQ(config.swap_space, GiB(3));  // Half of the other 6.
}

TEST_F(MachineMemoryTest, GpusTakeNoMemoryOfTheMachineButSwapSpace) {
  Config config;
  config.devices = {{"cuda", GiB(80), "GPU-a"}, {"host", GiB(2)}};
  ASSERT_TRUE(FitToMachine(GiB(8), "available", &config).ok());
  EXPECT_EQ(config.swap_space, GiB(3));  // Half of the other 6.
  config.swap_space = GiB(7);
  EXPECT_TRUE(
      absl::IsResourceExhausted(FitToMachine(GiB(8), "available", &config)));
}

TEST_F(MachineMemoryTest, GivenSizesStay) {
  Config config;
  config.devices = {{"host", MiB(100)}};
  config.swap_space = MiB(7);
  ASSERT_TRUE(FitToMachine(GiB(8), "available", &config).ok());
  EXPECT_EQ(config.devices[0].size, MiB(100));
  EXPECT_EQ(config.swap_space, MiB(7));
}

TEST_F(MachineMemoryTest, TooMuchIsRefusedWithTheNumbers) {
  Config config;
  config.devices = {{"host", GiB(3)}, {"host", GiB(3)}};
  config.swap_space = GiB(4);
  const absl::Status status = FitToMachine(GiB(8), "in all", &config);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("6 GiB"), HasSubstr("4 GiB"), HasSubstr("10 GiB"),
                    HasSubstr("has 8 GiB in all")));
}

TEST_F(MachineMemoryTest, ADeviceLargerThanTheMachineIsNamed) {
  Config config;
  // Their sum does not fit into 63 bits.
  config.devices = {{"host", Bytes(int64_t{1} << 62)},
                    {"host", Bytes(int64_t{1} << 62)}};
  const absl::Status status = FitToMachine(GiB(8), "available", &config);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("a host device takes 4194304 TiB"),
                    HasSubstr("8 GiB available")));
}

}  // namespace
}  // namespace mets::app
