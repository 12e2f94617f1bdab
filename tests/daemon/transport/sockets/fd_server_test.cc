#include "daemon/transport/sockets/fd_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/daemon/transport/admin/recording_sink.h"

namespace mets::transport {
namespace {

class FdServerTest : public ::testing::Test {
 protected:
  FdServerTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/fd.sock";
  }
  ~FdServerTest() override {
    server_ = nullptr;
    EXPECT_TRUE(std::filesystem::remove(dir_)) << "only the socket was there";
  }

  void Make(FdServerOptions options) {
    options.check_room = [](size_t, uid_t) { return absl::OkStatus(); };
    options.epoch = Epoch(1);
    options.on_lost = [this](const std::string& path) {
      EXPECT_EQ(path, path_);
      lost_.Notify();
    };
    options.listen_anew = [this](size_t) {
      auto listener = ipc::DescriptorListener::Listen(path_, 0600);
      if (listener.ok()) renewed_.Notify();
      return listener;
    };
    auto listener = ipc::DescriptorListener::Listen(path_, 0600);
    ASSERT_TRUE(listener.ok()) << listener.status();
    std::vector<ipc::DescriptorListener> listeners;
    listeners.push_back(*std::move(listener));
    auto server = FdServer::Create(std::move(options), std::move(listeners), {},
                                   registry_, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  ipc::DescriptorChannel Connect() {
    auto channel = ipc::DescriptorChannel::Connect(path_);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *std::move(channel);
  }
  static absl::StatusOr<ipc::Welcome> Answer(ipc::DescriptorChannel& channel) {
    return channel.ReceiveWelcome(absl::Seconds(20));
  }

  std::string dir_, path_;
  RecordingSink sink_;
  SessionRegistry registry_{{}, sink_};
  RealClock clock_;
  absl::Notification lost_, renewed_;
  std::unique_ptr<FdServer> server_;
};

TEST_F(FdServerTest, ACrowdThatComesAtOnceIsAdmitted) {
  FdServerOptions options;
  options.max_silent_peers_per_uid = 4;
  Make(options);
  std::vector<ipc::DescriptorChannel> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.push_back(Connect());
    ASSERT_TRUE(crowd.back().SendHello({}).ok());
  }
  server_->Start();  // After a while in which it was busy, say.
  for (ipc::DescriptorChannel& channel : crowd) {
    const auto welcome = Answer(channel);
    ASSERT_TRUE(welcome.ok()) << welcome.status();
    EXPECT_EQ(welcome->error, "");
  }
}

TEST_F(FdServerTest, OneSilentPeerTooManyIsTurnedAwayWithoutAWord) {
  FdServerOptions options;
  options.max_silent_peers_per_uid = 4;
  Make(options);
  server_->Start();
  std::vector<ipc::DescriptorChannel> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(Connect());
  // An error would tell a client that has come back not to try again.
  EXPECT_TRUE(absl::IsUnavailable(Answer(silent.back()).status()));
  ASSERT_TRUE(silent[0].SendHello({}).ok());
  EXPECT_TRUE(Answer(silent[0]).ok());
  ipc::DescriptorChannel next = Connect();
  ASSERT_TRUE(next.SendHello({}).ok());
  EXPECT_TRUE(Answer(next).ok());
}

TEST_F(FdServerTest, ASocketThatSomebodyRemovesIsThereAgain) {
  Make({});
  server_->Start();
  ipc::DescriptorChannel before = Connect();
  std::filesystem::remove(path_);
  lost_.WaitForNotification();
  renewed_.WaitForNotification();
  ipc::DescriptorChannel after = Connect();
  for (ipc::DescriptorChannel* channel : {&before, &after}) {
    ASSERT_TRUE(channel->SendHello({}).ok());
    EXPECT_TRUE(Answer(*channel).ok());
  }
}

}  // namespace
}  // namespace mets::transport
