#include "daemon/transport/sockets/socket_acceptor.h"

#include <grpcpp/generic/async_generic_service.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/ipc/socket_file.h"

namespace mets::transport {
namespace {

constexpr size_t kMostConnections = 50;

class SocketAcceptorTest : public ::testing::Test {
 protected:
  SocketAcceptorTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/session.sock";
    grpc::ServerBuilder builder;
    service_ = std::make_unique<grpc::AsyncGenericService>();
    builder.RegisterAsyncGenericService(service_.get());
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    std::vector<StreamListener> listeners;
    auto listener = StreamListener::Listen({path_, {}});
    EXPECT_TRUE(listener.ok()) << listener.status();
    listeners.push_back(*std::move(listener));
    SocketAcceptor::Options options;
    options.max_connections_per_user = kMostConnections;
    auto acceptor =
        SocketAcceptor::Start(options, std::move(listeners), *server_);
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
  }
  ~SocketAcceptorTest() override {
    acceptor_ = nullptr;
    server_->Shutdown();
    queue_->Shutdown();
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) {
    }
    std::filesystem::remove_all(dir_);
  }

  UniqueFd Connect() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    auto address = ipc::SocketAddress(path_);
    EXPECT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(connect(socket.get(),
                      reinterpret_cast<const sockaddr*>(&*address),
                      sizeof(*address)),
              0);
    return socket;
  }

  std::string dir_, path_;
  std::unique_ptr<grpc::AsyncGenericService> service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<SocketAcceptor> acceptor_;
};

TEST_F(SocketAcceptorTest, RoomEndsWithTheLastConnectionMadeBefore) {
  std::vector<UniqueFd> connections;
  for (size_t i = 0; i < kMostConnections; ++i) {
    EXPECT_TRUE(acceptor_->CheckRoom(0, getuid()).ok()) << i;
    connections.push_back(Connect());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(acceptor_->CheckRoom(0, getuid())));
}

}  // namespace
}  // namespace mets::transport
