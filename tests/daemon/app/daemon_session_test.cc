// Sessions against a whole daemon.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/daemon/app/daemon_fixture.h"
#include "tests/daemon/app/test_client.h"

namespace mets {
namespace {

using ::testing::HasSubstr;

class DaemonSessionTest : public DaemonFixture {
 protected:
  DaemonSessionTest() { Start(); }
};

TEST_F(DaemonSessionTest, GrantComesWithDescriptorsOfItsChunks) {
  TestClient client(run_dir_);
  client.Join("a");
  const v1::DaemonMessage answer = client.Acquire(1, 5 << 20);
  ASSERT_TRUE(answer.has_granted());
  const v1::Granted& granted = answer.granted();
  EXPECT_EQ(granted.request_id(), 1u);
  EXPECT_EQ(granted.epoch(), client.epoch());
  EXPECT_GT(granted.fd_seq(), 0u);
  uint64_t bytes = 0;
  for (const v1::Chunk& chunk : granted.chunks()) bytes += chunk.size_bytes();
  EXPECT_EQ(bytes, 5u << 20);
  int descriptors = 0;
  uint64_t seq = 0;
  while (seq < granted.fd_seq()) {
    const absl::StatusOr<ipc::Fds> fds = client.channel().ReceiveFds();
    ASSERT_TRUE(fds.ok()) << fds.status();
    seq = fds->seq;
    for (size_t i = 0; i < fds->fds.size(); ++i) {
      struct stat info;
      ASSERT_EQ(fstat(fds->fds[i].get(), &info), 0);
      EXPECT_EQ(info.st_size, fds->sizes[i].count());
      ++descriptors;
    }
  }
  EXPECT_EQ(descriptors, granted.chunks_size());
}

// The first grant's descriptors may still be under way.
TEST_F(DaemonSessionTest, AGrantOfChunksSentBeforeWaitsForTheirDescriptors) {
  TestClient client(run_dir_);
  client.Join("a");
  const v1::Granted first = client.Acquire(1, 1 << 20).granted();
  v1::ClientMessage release;
  release.mutable_release()->set_device("host0");
  for (const v1::Chunk& chunk : first.chunks()) {
    release.mutable_release()->add_chunk_ids(chunk.chunk_id());
  }
  ASSERT_TRUE(client.Send(release));
  const v1::Granted second = client.Acquire(2, 1 << 20).granted();
  ASSERT_GT(second.chunks_size(), 0);
  EXPECT_EQ(second.chunks(0).chunk_id(), first.chunks(0).chunk_id());
  EXPECT_GE(second.fd_seq(), first.fd_seq());
}

TEST_F(DaemonSessionTest, WrongTokenIsRefusedWithAClearText) {
  TestClient client(run_dir_);
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  v1::ClientMessage hello = client.Hello("a");
  hello.mutable_hello()->set_token(ipc::NewToken());
  ASSERT_TRUE(client.Send(hello));
  EXPECT_FALSE(client.Read().has_value());
  const absl::Status status = client.Finish();
  EXPECT_TRUE(absl::IsUnauthenticated(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("wrong token"));
}

TEST_F(DaemonSessionTest, OtherVersionIsRefusedWithAClearText) {
  TestClient client(run_dir_);
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  v1::ClientMessage hello = client.Hello("a");
  hello.mutable_hello()->set_protocol_version(99);
  client.Send(hello);
  const absl::Status status = client.Finish();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 99"));
}

TEST_F(DaemonSessionTest, BadJobNameIsRefusedWithAClearText) {
  TestClient client(run_dir_);
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  client.Send(client.Hello("no spaces"));
  const absl::Status status = client.Finish();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no spaces"));
}

TEST_F(DaemonSessionTest, NonsenseEndsTheStreamButNothingElse) {
  TestClient good(run_dir_);
  good.Join("good");
  TestClient bad(run_dir_);
  bad.Join("bad");
  bad.Send(v1::ClientMessage());
  EXPECT_TRUE(absl::IsInvalidArgument(bad.Finish()));
  EXPECT_TRUE(good.Acquire(1, 1 << 20).has_granted());
}

TEST_F(DaemonSessionTest, MessageBeforeHelloEndsTheStream) {
  TestClient client(run_dir_);
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  v1::ClientMessage acquire;
  acquire.mutable_acquire()->set_request_id(1);
  client.Send(acquire);
  EXPECT_TRUE(absl::IsInvalidArgument(client.Finish()));
}

TEST_F(DaemonSessionTest, MoreThanThePoolIsDeniedAtOnce) {
  TestClient client(run_dir_);
  client.Join("a");
  const v1::DaemonMessage answer = client.Acquire(1, 1 << 30, 60000);
  ASSERT_TRUE(answer.has_denied());
  EXPECT_TRUE(answer.denied().impossible());
  EXPECT_THAT(answer.denied().reason(), HasSubstr("1 GiB"));
}

TEST_F(DaemonSessionTest, SessionComesBackWithWhatItHolds) {
  TestClient client(run_dir_);
  client.Join("a");
  const v1::DaemonMessage answer = client.Acquire(1, 4 << 20);
  ASSERT_TRUE(answer.has_granted());
  const std::string old_token = client.token();
  client.Cancel();
  client.CloseDescriptors();
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  client.OpenStream();
  v1::ClientMessage hello = client.Hello("a");
  hello.mutable_hello()->set_reconnect(true);
  hello.mutable_hello()->set_previous_token(old_token);
  ASSERT_TRUE(client.Send(hello));
  ASSERT_TRUE(client.ReadUntil(v1::DaemonMessage::kWelcome).has_welcome());
  v1::ClientMessage attach;
  attach.mutable_attach_device()->set_device("host0");
  ASSERT_TRUE(client.Send(attach));
  v1::ClientMessage message;
  v1::Snapshot& snapshot = *message.mutable_snapshot();
  snapshot.set_device("host0");
  snapshot.set_epoch(client.epoch());
  snapshot.set_last(true);
  for (const v1::Chunk& chunk : answer.granted().chunks()) {
    snapshot.add_chunk_ids(chunk.chunk_id());
  }
  ASSERT_TRUE(client.Send(message));
  // Chunks in hand and new ones: all of the pool, and not more.
  EXPECT_TRUE(client.Acquire(2, 12 << 20).has_granted());
  EXPECT_TRUE(client.Acquire(3, 1 << 20, 0).has_denied());
  const core::Status status = daemon_->GetStatus();
  ASSERT_EQ(status.jobs.size(), 1u);
  EXPECT_EQ(status.jobs[0].sessions, 1);
  EXPECT_EQ(status.devices[0].free, Bytes());
}

// What a client process does in these tests, then it waits to be killed.
pid_t ForkHolder(const std::string& run_dir, int ready_fd, bool with_child) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  // gRPC does not survive a fork: this program runs itself again.
  execl("/proc/self/exe", "holder", run_dir.c_str(),
        std::to_string(ready_fd).c_str(), with_child ? "child" : "alone",
        nullptr);
  _exit(9);
}

class KilledClientTest : public DaemonSessionTest,
                         public ::testing::WithParamInterface<bool> {};

TEST_P(KilledClientTest, MemoryOfAKilledProcessIsFreeAgain) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = ForkHolder(run_dir_, ready[1], GetParam());
  ASSERT_GT(pid, 0);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  EXPECT_LT(daemon_->GetStatus().devices[0].free, MiB(16));
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  const absl::Time killed = absl::Now();
  EXPECT_TRUE(Await([](const core::Status& status) {
    return status.devices[0].free == MiB(16) && status.sessions.empty();
  }));
  EXPECT_LT(absl::Now() - killed, absl::Seconds(1));
  waitpid(pid, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAChild, KilledClientTest,
                         ::testing::Bool());

}  // namespace

// Holds 8 MiB until it is killed; perhaps with a child that keeps the sockets.
int RunHolder(char** argv) {
  TestClient client(argv[1]);
  client.Join("holder");
  if (!client.Acquire(1, 8 << 20).has_granted()) return 1;
  if (std::string(argv[3]) == "child" && fork() == 0) {
    alarm(5);
    while (true) pause();
  }
  if (write(std::stoi(argv[2]), "x", 1) != 1) return 1;
  alarm(60);
  while (true) pause();
}

}  // namespace mets

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[0]) == "holder") {
    return mets::RunHolder(argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
