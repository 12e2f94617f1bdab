#include <fstream>

#include "tests/common/ipc/channel_fixture.h"

namespace mets::ipc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DescriptorListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/mets-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/fd.sock";
  }
  void TearDown() override {
    unlink(path_.c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(DescriptorListenerTest, ClientsConnectAndTalk) {
  absl::StatusOr<DescriptorListener> listener =
      DescriptorListener::Listen(path_, 0600);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(listener->Accept().status()));
  absl::StatusOr<DescriptorChannel> client = DescriptorChannel::Connect(path_);
  ASSERT_TRUE(client.ok()) << client.status();
  absl::StatusOr<DescriptorChannel> daemon = listener->Accept();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  ASSERT_TRUE(client->SendHello(Hello()).ok());
  UniqueFd pidfd;
  EXPECT_TRUE(daemon->ReceiveHello(&pidfd).ok());
  EXPECT_EQ(daemon->GetPeer()->pid, getpid());
}

TEST_F(DescriptorListenerTest, FileHasItsModeAndGoesWithTheListener) {
  {
    absl::StatusOr<DescriptorListener> listener =
        DescriptorListener::Listen(path_, 0620);
    ASSERT_TRUE(listener.ok());
    struct stat info;
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0620u);
    DescriptorListener moved = *std::move(listener);
    EXPECT_EQ(moved.path(), path_);
    EXPECT_EQ(access(path_.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(DescriptorListenerTest, OccupiedPathIsRefused) {
  absl::StatusOr<DescriptorListener> first =
      DescriptorListener::Listen(path_, 0600);
  ASSERT_TRUE(first.ok());
  const absl::Status second = DescriptorListener::Listen(path_, 0600).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(second.message(),
              AllOf(HasSubstr(path_), HasSubstr("another metsd")));
  EXPECT_TRUE(DescriptorChannel::Connect(path_).ok()) << "the first goes on";
}

TEST_F(DescriptorListenerTest, StaleSocketIsReplaced) {
  {
    absl::StatusOr<DescriptorListener> dead =
        DescriptorListener::Listen(path_, 0600);
    ASSERT_TRUE(dead.ok());
    // As after a kill: the socket is closed, its file stays.
    ASSERT_EQ(rename(path_.c_str(), (path_ + "2").c_str()), 0);
  }
  ASSERT_EQ(rename((path_ + "2").c_str(), path_.c_str()), 0);
  EXPECT_TRUE(absl::IsUnavailable(DescriptorChannel::Connect(path_).status()));
  EXPECT_TRUE(DescriptorListener::Listen(path_, 0600).ok());
}

TEST_F(DescriptorListenerTest, OtherFilesAreNotReplaced) {
  std::ofstream(path_) << "precious";
  const absl::Status status = DescriptorListener::Listen(path_, 0600).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

TEST_F(DescriptorListenerTest, ConnectErrorsSayWhatToDo) {
  const absl::Status missing = DescriptorChannel::Connect(path_).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.message(),
              AllOf(HasSubstr(path_), HasSubstr("start metsd")));
  const std::string too_long = folder_ + std::string(200, 'x');
  EXPECT_TRUE(
      absl::IsInvalidArgument(DescriptorChannel::Connect(too_long).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      DescriptorListener::Listen(too_long, 0600).status()));
  EXPECT_TRUE(absl::IsNotFound(
      DescriptorListener::Listen(folder_ + "/none/fd.sock", 0600).status()));
}

TEST_F(DescriptorListenerTest, UserWithoutPermissionIsTold) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to become another user";
  absl::StatusOr<DescriptorListener> listener =
      DescriptorListener::Listen(path_, 0600);
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const absl::Status status = DescriptorChannel::Connect(path_).status();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr(path_), HasSubstr("group")));
}

}  // namespace
}  // namespace mets::ipc
