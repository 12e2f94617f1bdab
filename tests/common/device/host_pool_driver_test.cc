#include "common/device/host/host_pool_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace mets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A machine with as much memory as the test wants.
class HostPoolDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/mets-meminfo-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    options_.meminfo_path = path;
    options_.total = MiB(512);
  }
  void TearDown() override { unlink(options_.meminfo_path.c_str()); }

  void SetAvailable(Bytes available) {
    Write(absl::StrCat("MemTotal: 1 kB\nMemAvailable:    ", available / KiB(1),
                       " kB\nBuffers: 7 kB\n"));
  }
  void Write(const std::string& text) {
    std::FILE* file = std::fopen(options_.meminfo_path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }

  HostPoolOptions options_;
};

TEST_F(HostPoolDriverTest, MachineWithoutMemoryRefusesWithNumbers) {
  HostPoolDriver pool(options_);
  SetAvailable(MiB(65));
  const absl::Status refused = pool.CreateChunk(MiB(4)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("65 MiB of memory available"),
                                       HasSubstr("4 MiB were wanted")));
  EXPECT_TRUE(absl::IsResourceExhausted(pool.CreateExtent(MiB(4)).status()));
  SetAvailable(MiB(600));
  EXPECT_EQ(*pool.FreeBytes(), MiB(512)) << "the refused chunk was given back";
  EXPECT_TRUE(pool.CreateChunk(MiB(4)).ok());
}

TEST_F(HostPoolDriverTest, FreeBytesIsWhatMachineAndDeviceHave) {
  HostPoolDriver pool(options_);
  SetAvailable(MiB(100));
  EXPECT_EQ(*pool.FreeBytes(), MiB(100));
  SetAvailable(GiB(2));
  EXPECT_EQ(*pool.FreeBytes(), MiB(512));
  ASSERT_TRUE(pool.CreateChunk(MiB(16)).ok());
  EXPECT_EQ(*pool.FreeBytes(), MiB(496));
}

TEST_F(HostPoolDriverTest, UnreadableMeminfoIsAnError) {
  HostPoolDriver pool(options_);
  Write("nothing here\n");
  EXPECT_TRUE(absl::IsInternal(pool.FreeBytes().status()));
  EXPECT_FALSE(pool.CreateChunk(MiB(4)).ok());
  options_.meminfo_path = "/nonexistent/meminfo";
  EXPECT_TRUE(absl::IsNotFound(HostPoolDriver(options_).FreeBytes().status()));
}

TEST_F(HostPoolDriverTest, ErrorNamesWhatTheDeviceHasLeft) {
  options_.total = MiB(20);
  SetAvailable(GiB(2));
  HostPoolDriver pool(options_);
  ASSERT_TRUE(pool.CreateChunk(MiB(16)).ok());
  const absl::Status refused = pool.CreateChunk(MiB(16)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("16 MiB"), HasSubstr("20 MiB"),
                                       HasSubstr("4 MiB left")));
}

TEST_F(HostPoolDriverTest, ChunksAndExtentsAreNamedInMaps) {
  SetAvailable(GiB(2));
  HostPoolDriver pool(options_);
  const auto name = [](const absl::StatusOr<UniqueFd>& fd) {
    char target[PATH_MAX] = {};
    EXPECT_GT(readlink(absl::StrCat("/proc/self/fd/", fd->get()).c_str(),
                       target, sizeof(target) - 1),
              0);
    return std::string(target);
  };
  EXPECT_THAT(name(pool.CreateChunk(KiB(64))), HasSubstr("memfd:mets-chunk"));
  EXPECT_THAT(name(pool.CreateExtent(MiB(1))), HasSubstr("memfd:mets-extent"));
}

}  // namespace
}  // namespace mets
