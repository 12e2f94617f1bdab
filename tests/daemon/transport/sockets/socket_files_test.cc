#include "daemon/transport/sockets/socket_files.h"

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

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(SocketFilesTest, RunDirThatEverybodyMayWriteToIsRefused) {
  ASSERT_EQ(chmod(dir_.c_str(), 01777), 0);
  const absl::Status status = PrepareRunDir(dir_);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(dir_), HasSubstr("chmod o-w"),
                    HasSubstr("--run-dir " + dir_ + "/mets")));
  ASSERT_EQ(chmod(dir_.c_str(), 0775), 0);
  EXPECT_TRUE(PrepareRunDir(dir_).ok());
}

TEST_F(SocketFilesTest, CheckingARunDirMakesNone) {
  EXPECT_TRUE(CheckRunDir(dir_ + "/run").ok());
  struct stat info;
  EXPECT_NE(stat((dir_ + "/run").c_str(), &info), 0);
  EXPECT_TRUE(absl::IsNotFound(CheckRunDir(dir_ + "/no/run")));
}

TEST_F(SocketFilesTest, WhereNothingCanBeMadeTheReasonIsTheSystems) {
  const std::string said(PrepareRunDir("/proc/run").message());
  EXPECT_THAT(said, HasSubstr("run directory /proc/run cannot be made"));
  EXPECT_THAT(said, Not(HasSubstr("/proc does not exist")));
}

TEST_F(SocketFilesTest, DirectoryOfAnotherUserIsNamedWithBothUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  ASSERT_EQ(seteuid(1234), 0);
  const absl::Status status = PrepareRunDir(dir_);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("belongs to uid 0"), HasSubstr("uid 1234"),
                    HasSubstr("--run-dir")));
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
