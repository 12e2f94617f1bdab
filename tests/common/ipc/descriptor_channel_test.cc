#include "common/ipc/descriptor_channel.h"

#include <sys/wait.h>

#include <vector>

#include "common/base/process.h"
#include "tests/common/ipc/channel_fixture.h"

namespace mets::ipc {
namespace {

using ::testing::HasSubstr;

TEST_F(ChannelTest, HelloBringsVersionAndPidfd) {
  Hello hello;
  hello.version = 7;
  ASSERT_TRUE(client_->SendHello(hello).ok());
  UniqueFd pidfd;
  absl::StatusOr<Hello> received = daemon_->ReceiveHello(&pidfd);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->version, 7u);
  ASSERT_TRUE(pidfd.ok());
  EXPECT_EQ(*PidOfPidfd(pidfd.get()), getpid());
  EXPECT_NE(fcntl(pidfd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ChannelTest, WelcomeBringsTokenAndEpoch) {
  Welcome welcome;
  welcome.version = 3;
  welcome.token = NewToken();
  welcome.epoch = 99;
  ASSERT_TRUE(daemon_->SendWelcome(welcome).ok());
  absl::StatusOr<Welcome> received = client_->ReceiveWelcome(absl::Seconds(10));
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->version, 3u);
  EXPECT_EQ(received->token, welcome.token);
  EXPECT_EQ(received->epoch, 99u);
  EXPECT_EQ(received->error, "");
}

TEST_F(ChannelTest, WelcomeBringsRefusal) {
  Welcome welcome;
  welcome.error = "version 9 is not spoken here";
  ASSERT_TRUE(daemon_->SendWelcome(welcome).ok());
  absl::StatusOr<Welcome> received = client_->ReceiveWelcome(absl::Seconds(10));
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->error, welcome.error);
  EXPECT_EQ(received->token, "");
}

TEST_F(ChannelTest, LongRefusalIsCut) {
  Welcome welcome;
  welcome.error = std::string(100000, 'x');
  ASSERT_TRUE(daemon_->SendWelcome(welcome).ok());
  absl::StatusOr<Welcome> received = client_->ReceiveWelcome(absl::Seconds(10));
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->error, std::string(4096, 'x'));
}

TEST_F(ChannelTest, FdsArriveInPairsWithTheirIds) {
  UniqueFd a = MakeFile();
  UniqueFd b = MakeFile();
  ASSERT_TRUE(daemon_
                  ->SendFds(5, FdKind::kExtent, {11, 12}, {KiB(64), GiB(1)},
                            {a.get(), b.get()})
                  .ok());
  absl::StatusOr<Fds> fds = client_->ReceiveFds();
  ASSERT_TRUE(fds.ok()) << fds.status();
  EXPECT_EQ(fds->seq, 5u);
  EXPECT_EQ(fds->kind, FdKind::kExtent);
  EXPECT_EQ(fds->ids, (std::vector<uint64_t>{11, 12}));
  EXPECT_EQ(fds->sizes, (std::vector<Bytes>{KiB(64), GiB(1)}));
  ASSERT_EQ(fds->fds.size(), 2u);
  EXPECT_EQ(InodeOf(fds->fds[0].get()), InodeOf(a.get()));
  EXPECT_EQ(InodeOf(fds->fds[1].get()), InodeOf(b.get()));
  EXPECT_NE(fcntl(fds->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(ChannelTest, TheLargestMessageFits) {
  UniqueFd file = MakeFile();
  const std::vector<uint64_t> ids(kMaxUnacknowledgedFds, ~uint64_t{0});
  const std::vector<Bytes> sizes(kMaxUnacknowledgedFds, GiB(1));
  const std::vector<int> raw(kMaxUnacknowledgedFds, file.get());
  ASSERT_TRUE(daemon_->SendFds(1, FdKind::kChunk, ids, sizes, raw).ok());
  absl::StatusOr<Fds> fds = client_->ReceiveFds();
  ASSERT_TRUE(fds.ok()) << fds.status();
  EXPECT_EQ(fds->fds.size(), static_cast<size_t>(kMaxUnacknowledgedFds));
}

TEST_F(ChannelTest, AcknowledgementArrives) {
  ASSERT_TRUE(client_->SendFdsReceived(17).ok());
  absl::StatusOr<uint64_t> seq = daemon_->ReceiveFdsReceived();
  ASSERT_TRUE(seq.ok()) << seq.status();
  EXPECT_EQ(*seq, 17u);
}

TEST_F(ChannelTest, DaemonNeverBlocks) {
  UniqueFd pidfd;
  EXPECT_TRUE(absl::IsDeadlineExceeded(daemon_->ReceiveHello(&pidfd).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(daemon_->ReceiveFdsReceived().status()));
  UniqueFd file = MakeFile();
  absl::Status status;
  for (int i = 1; i < 100000 && status.ok(); ++i) {
    status = daemon_->SendFds(i, FdKind::kChunk, {1}, {KiB(64)}, {file.get()});
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(ChannelTest, WelcomeThatDoesNotComeIsADeadline) {
  const absl::Status status =
      client_->ReceiveWelcome(absl::Milliseconds(1)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("did not answer"));
}

TEST_F(ChannelTest, GonePeerIsUnavailable) {
  daemon_.reset();
  EXPECT_TRUE(absl::IsUnavailable(client_->ReceiveFds().status()));
  EXPECT_TRUE(absl::IsUnavailable(client_->SendFdsReceived(1)));
  EXPECT_TRUE(absl::IsUnavailable(client_->SendHello(Hello())));
  EXPECT_TRUE(
      absl::IsUnavailable(client_->ReceiveWelcome(absl::Seconds(1)).status()));
}

TEST_F(ChannelTest, PeerIsKnownByItsCredentials) {
  absl::StatusOr<Peer> peer = daemon_->GetPeer();
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->uid, getuid());
  EXPECT_EQ(peer->pid, getpid());
  if (peer->pidfd.ok()) {
    EXPECT_EQ(*PidOfPidfd(peer->pidfd.get()), getpid());
  }
}

TEST(NewToken, TokensDiffer) {
  EXPECT_EQ(NewToken().size(), kTokenSize);
  EXPECT_NE(NewToken(), NewToken());
}

}  // namespace
}  // namespace mets::ipc
