#include "daemon/transport/socket_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "common/ipc/descriptor_channel.h"

namespace mets::transport {
namespace {

using ::testing::HasSubstr;

class SocketFilesTest : public ::testing::Test {
 protected:
  SocketFilesTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~SocketFilesTest() override {
    EXPECT_EQ(std::system(("rm -rf " + dir_).c_str()), 0);
  }

  std::string dir_;
};

TEST_F(SocketFilesTest, RunDirIsMadeInItsParent) {
  const std::string run_dir = dir_ + "/run";
  ASSERT_TRUE(PrepareRunDir(run_dir).ok());
  struct stat info;
  ASSERT_EQ(stat(run_dir.c_str(), &info), 0);
  EXPECT_TRUE(S_ISDIR(info.st_mode));
  EXPECT_TRUE(PrepareRunDir(run_dir).ok());
}

TEST_F(SocketFilesTest, MissingParentIsNamed) {
  const absl::Status status = PrepareRunDir(dir_ + "/no/run");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(dir_ + "/no does not exist"));
}

TEST_F(SocketFilesTest, FileInPlaceOfTheRunDirIsRefused) {
  std::ofstream(dir_ + "/file") << "x";
  EXPECT_THAT(std::string(PrepareRunDir(dir_ + "/file").message()),
              HasSubstr("is not a directory"));
}

TEST_F(SocketFilesTest, PathTooLongForASocketIsRefused) {
  const absl::Status status = PrepareRunDir(dir_ + "/" + std::string(120, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

TEST_F(SocketFilesTest, StaleSocketIsRemovedAndOtherFilesStay) {
  const std::string path = dir_ + "/a.sock";
  EXPECT_TRUE(ClearSocketPath(path).ok());
  {
    auto listener = ipc::DescriptorListener::Listen(path, 0600);
    ASSERT_TRUE(listener.ok());
    const absl::Status status = ClearSocketPath(path);
    EXPECT_TRUE(absl::IsAlreadyExists(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  std::ofstream(path) << "x";
  EXPECT_THAT(std::string(ClearSocketPath(path).message()),
              HasSubstr("no socket"));
}

TEST_F(SocketFilesTest, UnknownGroupIsNamed) {
  EXPECT_TRUE(FindGroup("root").ok());
  const auto group = FindGroup("no-such-group");
  EXPECT_TRUE(absl::IsNotFound(group.status()));
  EXPECT_THAT(std::string(group.status().message()),
              HasSubstr("no-such-group"));
}

}  // namespace
}  // namespace mets::transport
