// Clients that do not keep to the rules; others must not notice.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"
#include "tests/daemon/app/daemon_fixture.h"
#include "tests/daemon/app/test_client.h"

namespace mets {
namespace {

using ::testing::HasSubstr;

int OpenDescriptors() {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++count;
  }
  return count;
}

class HostileClientTest : public DaemonFixture {
 protected:
  HostileClientTest() { Start(); }

  // A raw connection to fd.sock.
  UniqueFd RawConnect() {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    (run_dir_ + "/fd.sock").copy(address.sun_path, sizeof(address.sun_path));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    timeval timeout = {15, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    return fd;
  }

  // Reads until the daemon has closed the connection.
  static bool IsClosed(int fd) {
    char buffer[4096];
    while (true) {
      const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
      if (n == 0) return true;
      if (n < 0) return errno == ECONNRESET;
    }
  }

  void ExpectServing() {
    TestClient client(run_dir_);
    client.Join("good");
    EXPECT_TRUE(client.Acquire(1, 1 << 20).has_granted());
  }
};

TEST_F(HostileClientTest, GarbageOnTheDescriptorSocketEndsTheConnection) {
  UniqueFd fd = RawConnect();
  ASSERT_GT(send(fd.get(), "garbage", 7, 0), 0);
  EXPECT_TRUE(IsClosed(fd.get()));
  ExpectServing();
}

TEST_F(HostileClientTest, DescriptorsWhereNoneBelongAreClosed) {
  const int before = OpenDescriptors();
  for (int round = 0; round < 20; ++round) {
    UniqueFd fd = RawConnect();
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char control[CMSG_SPACE(sizeof(int) * 2)] = {};
    char body[16] = "sixteen bytes!!";
    iovec part = {body, sizeof(body)};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * 2);
    const int two[] = {null, null};
    std::memcpy(CMSG_DATA(header), two, sizeof(two));
    ASSERT_GT(sendmsg(fd.get(), &message, 0), 0);
    EXPECT_TRUE(IsClosed(fd.get()));
    close(null);
  }
  // The daemon is this process: its descriptors are ours.
  for (int i = 0; i < 1000 && OpenDescriptors() > before; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_LE(OpenDescriptors(), before);
}

TEST_F(HostileClientTest, PeerThatSaysNothingIsDropped) {
  UniqueFd fd = RawConnect();
  EXPECT_TRUE(IsClosed(fd.get()));  // After five seconds.
  ExpectServing();
}

TEST_F(HostileClientTest, SilentPeersAreBounded) {
  std::vector<UniqueFd> peers;
  for (int i = 0; i < 100; ++i) peers.push_back(RawConnect());
  EXPECT_TRUE(IsClosed(peers.back().get()));
}

TEST_F(HostileClientTest, ClientThatNeverTakesDescriptorsDelaysNobody) {
  TestClient lazy(run_dir_);
  lazy.Join("lazy");
  for (uint64_t i = 1; i <= 120; ++i) {
    ASSERT_TRUE(lazy.Acquire(i, 64 << 10).has_granted());
  }
  ExpectServing();
}

TEST_F(HostileClientTest, ClientThatNeverReadsLosesItsStreamOnly) {
  TestClient flooder(run_dir_);
  flooder.Join("flooder");
  // Each request is answered by a long text that nobody reads.
  v1::ClientMessage acquire;
  acquire.mutable_acquire()->set_device("host0");
  acquire.mutable_acquire()->add_range_bytes(1 << 30);
  std::thread flood([&] {
    const absl::Time end = absl::Now() + absl::Seconds(3);
    for (uint64_t i = 1; absl::Now() < end; ++i) {
      acquire.mutable_acquire()->set_request_id(i);
      if (!flooder.Send(acquire)) break;
    }
  });
  for (int i = 0; i < 5; ++i) ExpectServing();
  flood.join();
  ExpectServing();
}

TEST_F(HostileClientTest, OversizedMessageEndsTheStream) {
  TestClient client(run_dir_);
  client.Join("big");
  v1::ClientMessage message;
  message.mutable_trace_chunk()->set_data(std::string(4 << 20, 'x'));
  client.Send(message);
  EXPECT_TRUE(absl::IsResourceExhausted(client.Finish()));
  ExpectServing();
}

TEST_F(HostileClientTest, AMessageThatCannotBeReadIsAnError) {
  TestClient client(run_dir_);
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  client.Send(client.Hello("\xff\xfe"));  // Which no text may have.
  const absl::Status status = client.Finish();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("cannot read a message of"));
  ExpectServing();
}

TEST_F(HostileClientTest, UserWithoutTheGroupMayNotConnect) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  std::filesystem::permissions(dir_, std::filesystem::perms(0755));
  const pid_t pid = fork();
  if (pid == 0) {
    if (setgroups(0, nullptr) != 0 || setgid(12345) != 0 ||
        setuid(12345) != 0) {
      _exit(2);
    }
    const auto channel = ipc::DescriptorChannel::Connect(run_dir_ + "/fd.sock");
    _exit(absl::IsPermissionDenied(channel.status()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace mets
