#include "daemon/transport/sockets/fd_connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

namespace mets::transport {
namespace {

class FdConnectionTest : public ::testing::Test {
 protected:
  FdConnectionTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    daemon_ = std::make_unique<FdConnection>(
        ipc::DescriptorChannel(UniqueFd(fds[0])));
    client_ = std::make_unique<ipc::DescriptorChannel>(UniqueFd(fds[1]));
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
  }

  absl::StatusOr<uint64_t> Send(int count) {
    std::vector<OutgoingFd> fds;
    for (int i = 0; i < count; ++i) {
      fds.push_back(
          {next_id_++, KiB(64), UniqueFd(open("/dev/null", O_RDONLY))});
    }
    return daemon_->Send(ipc::FdKind::kChunk, std::move(fds));
  }

  // Reads all that is there; the number of descriptors. Sets last_seq_.
  int ReceiveAll() {
    int count = 0;
    while (true) {
      absl::StatusOr<ipc::Fds> fds = client_->ReceiveFds();
      if (!fds.ok()) return count;
      EXPECT_EQ(fds->seq, last_seq_ + 1);
      last_seq_ = fds->seq;
      for (uint64_t id : fds->ids) EXPECT_EQ(id, ++last_id_);
      count += static_cast<int>(fds->fds.size());
    }
  }

  uint64_t next_id_ = 1;
  uint64_t last_id_ = 0;
  uint64_t last_seq_ = 0;
  std::unique_ptr<FdConnection> daemon_;
  std::unique_ptr<ipc::DescriptorChannel> client_;
};

TEST_F(FdConnectionTest, SmallBatchGoesAtOnce) {
  const absl::StatusOr<uint64_t> seq = Send(3);
  ASSERT_TRUE(seq.ok());
  EXPECT_EQ(ReceiveAll(), 3);
  EXPECT_EQ(last_seq_, *seq);
}

TEST_F(FdConnectionTest, AtMost253AreUnacknowledged) {
  const absl::StatusOr<uint64_t> seq = Send(1000);
  ASSERT_TRUE(seq.ok());
  int received = 0;
  while (received < 1000) {
    const int now = ReceiveAll();
    ASSERT_GT(now, 0);
    EXPECT_LE(now, ipc::kMaxUnacknowledgedFds);
    received += now;
    ASSERT_TRUE(daemon_->Acknowledge(last_seq_).ok());
  }
  EXPECT_EQ(last_seq_, *seq);
}

TEST_F(FdConnectionTest, ClientThatNeverAcknowledgesIsRefusedMore) {
  ASSERT_TRUE(Send(200).ok());  // Unacknowledged.
  ASSERT_TRUE(Send(4000).ok());
  const absl::StatusOr<uint64_t> seq = Send(200);
  EXPECT_TRUE(absl::IsResourceExhausted(seq.status())) << seq.status();
}

TEST_F(FdConnectionTest, AcknowledgingWhatWasNotSentIsAnError) {
  ASSERT_TRUE(Send(1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(daemon_->Acknowledge(2)));
  EXPECT_TRUE(daemon_->Acknowledge(1).ok());
}

TEST_F(FdConnectionTest, ClosedConnectionSendsNothing) {
  daemon_->Close();
  EXPECT_TRUE(absl::IsUnavailable(Send(1).status()));
  EXPECT_EQ(ReceiveAll(), 0);
}

}  // namespace
}  // namespace mets::transport
