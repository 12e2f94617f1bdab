// Peers that do not keep to the protocol.
#include <cstring>
#include <vector>

#include "common/base/process.h"
#include "common/ipc/packet.h"
#include "tests/common/ipc/channel_fixture.h"

namespace mets::ipc {
namespace {

class HostilePeerTest : public ChannelTest {
 protected:
  // Sends raw bytes and any number of descriptors of /dev/null.
  void SendRaw(DescriptorChannel& from, const std::string& bytes, int fds,
               int parts = 1) {
    UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    std::vector<char> control(parts * CMSG_SPACE(sizeof(int) * fds) + 1, 0);
    iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fds > 0) {
      message.msg_control = control.data();
      message.msg_controllen = parts * CMSG_SPACE(sizeof(int) * fds);
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      const std::vector<int> raw(fds, null.get());
      for (int i = 0; i < parts; ++i) {
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * fds);
        std::memcpy(CMSG_DATA(head), raw.data(), sizeof(int) * fds);
        head = CMSG_NXTHDR(&message, head);
      }
    }
    ASSERT_GE(sendmsg(from.fd(), &message, MSG_NOSIGNAL), 0) << errno;
  }
  static std::string Packet(PacketType type, const std::string& body) {
    PacketHeader header;
    header.type = type;
    return std::string(AsBytes(header)) + body;
  }
  // All of a daemon's ways to receive refuse it, and nothing leaks.
  void ExpectHelloRefused(const std::string& bytes, int fds) {
    const int before = CountOpenFds();
    SendRaw(*client_, bytes, fds);
    UniqueFd pidfd;
    const absl::Status status = daemon_->ReceiveHello(&pidfd).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_FALSE(pidfd.ok());
    EXPECT_EQ(CountOpenFds(), before);
  }
  const std::string hello_ = Packet(PacketType::kHello, std::string(8, '\1'));
};

TEST_F(HostilePeerTest, HelloOfAnotherSizeIsRefused) {
  for (size_t size : {1, 7, 8, 9, 15, 17, 4000, 16384, 20000}) {
    std::string bytes = Packet(PacketType::kHello, std::string(20000, 'x'));
    ExpectHelloRefused(bytes.substr(0, size), 0);
  }
}

TEST_F(HostilePeerTest, OtherMagicVersionAndTypeAreRefused) {
  for (size_t place : {0, 3, 4, 6}) {
    std::string bytes = hello_;
    bytes[place] ^= 0x40;
    ExpectHelloRefused(bytes, 0);
  }
  ExpectHelloRefused(Packet(PacketType::kFdsReceived, std::string(8, '\0')), 0);
}

TEST_F(HostilePeerTest, HelloWithoutPidfdIsAccepted) {
  SendRaw(*client_, hello_, 0);
  UniqueFd pidfd;
  EXPECT_TRUE(daemon_->ReceiveHello(&pidfd).ok());
  EXPECT_FALSE(pidfd.ok());
}

TEST_F(HostilePeerTest, HelloWithWhatIsNoPidfdIsRefused) {
  ExpectHelloRefused(hello_, 1);
}

TEST_F(HostilePeerTest, HelloWithSeveralDescriptorsIsRefused) {
  ExpectHelloRefused(hello_, 2);
  ExpectHelloRefused(hello_, 253);
}

TEST_F(HostilePeerTest, HelloWithAnotherProcessesPidfdIsRefused) {
  absl::StatusOr<UniqueFd> parent = OpenPidfd(getppid());
  ASSERT_TRUE(parent.ok());
  const int fds[] = {parent->get()};
  ASSERT_TRUE(SendPacket(client_->fd(), PacketType::kHello,
                         std::string(8, '\1'), fds, 0)
                  .ok());
  UniqueFd pidfd;
  EXPECT_TRUE(absl::IsInvalidArgument(daemon_->ReceiveHello(&pidfd).status()));
}

TEST_F(HostilePeerTest, DescriptorsInAnAcknowledgementAreClosed) {
  const int before = CountOpenFds();
  const std::string bytes =
      Packet(PacketType::kFdsReceived, std::string(8, '\1'));
  SendRaw(*client_, bytes, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(daemon_->ReceiveFdsReceived().status()));
  EXPECT_EQ(CountOpenFds(), before);
  SendRaw(*client_, bytes, 0);
  EXPECT_TRUE(daemon_->ReceiveFdsReceived().ok()) << "the channel goes on";
}

TEST_F(HostilePeerTest, EmptyMessageWithDescriptorsLeaksNothing) {
  const int before = CountOpenFds();
  SendRaw(*client_, "", 4);
  EXPECT_FALSE(daemon_->ReceiveFdsReceived().ok());
  EXPECT_EQ(CountOpenFds(), before);
}

TEST_F(HostilePeerTest, ControlDataInSeveralPartsLeaksNothing) {
  const int before = CountOpenFds();
  SendRaw(*client_, hello_, 2, 3);
  UniqueFd pidfd;
  EXPECT_FALSE(daemon_->ReceiveHello(&pidfd).ok());
  EXPECT_EQ(CountOpenFds(), before);
}

TEST_F(HostilePeerTest, ClientRefusesMalformedFds) {
  struct {
    uint64_t seq = 1;
    uint32_t kind = 1;
    uint32_t count = 1;
    uint64_t id = 1;
    uint64_t size = 65536;
  } good;
  const auto send = [&](const auto& body, int fds, size_t cut = 0) {
    const int before = CountOpenFds();
    std::string bytes(AsBytes(body));
    bytes.resize(bytes.size() - cut);
    SendRaw(*daemon_, Packet(PacketType::kFds, bytes), fds);
    const absl::Status status = client_->ReceiveFds().status();
    EXPECT_EQ(CountOpenFds(), before);
    return status;
  };
  EXPECT_TRUE(send(good, 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(send(good, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(send(good, 2)));
  EXPECT_TRUE(absl::IsInvalidArgument(send(good, 1, 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(send(good, 1, 17)));
  for (int field = 0; field < 6; ++field) {
    auto bad = good;
    if (field == 0) bad.seq = 0;
    if (field == 1) bad.kind = 9;
    if (field == 2) bad.count = 0x10000001;
    if (field == 3) bad.id = 0;
    if (field == 4) bad.size = 0;
    if (field == 5) bad.size = ~uint64_t{0};
    EXPECT_TRUE(absl::IsInvalidArgument(send(bad, 1))) << field;
  }
}

TEST_F(HostilePeerTest, ClientRefusesMalformedWelcome) {
  for (size_t size : {0, 8, 47}) {
    SendRaw(*daemon_, Packet(PacketType::kWelcome, std::string(size, '\0')), 0);
    EXPECT_TRUE(absl::IsInvalidArgument(
        client_->ReceiveWelcome(absl::Seconds(10)).status()));
  }
  // Neither token nor error.
  SendRaw(*daemon_, Packet(PacketType::kWelcome, std::string(48, '\0')), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->ReceiveWelcome(absl::Seconds(10)).status()));
  SendRaw(*daemon_, Packet(PacketType::kWelcome, std::string(48, '\1')), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->ReceiveWelcome(absl::Seconds(10)).status()));
}

}  // namespace
}  // namespace mets::ipc
