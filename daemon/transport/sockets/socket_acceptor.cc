#include "daemon/transport/sockets/socket_acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <utility>

#include "common/base/status_macros.h"

namespace mets::transport {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<SocketAcceptor>> SocketAcceptor::Start(
    UniqueFd socket, grpc::Server& server) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  std::unique_ptr<SocketAcceptor> acceptor(
      new SocketAcceptor(std::move(socket), server, std::move(loop)));
  SocketAcceptor* self = acceptor.get();
  METS_RETURN_IF_ERROR(self->Watch());
  self->loop_->Start(kLookEvery, [self] {
    if (self->rests_) self->rests_ = !self->Watch().ok();
  });
  return acceptor;
}

SocketAcceptor::SocketAcceptor(UniqueFd socket, grpc::Server& server,
                               std::unique_ptr<EventLoop> loop)
    : socket_(std::move(socket)), server_(server), loop_(std::move(loop)) {}

SocketAcceptor::~SocketAcceptor() { loop_->Stop(); }

absl::Status SocketAcceptor::Watch() {
  return loop_->Watch(socket_.get(), [this] { AcceptAll(); });
}

void SocketAcceptor::AcceptAll() {
  while (true) {
    const int fd =
        accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      grpc::AddInsecureChannelFromFd(&server_, fd);  // Its own from now on.
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      // The socket would be ready all the time.
      loop_->Unwatch(socket_.get());
      rests_ = true;
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

}  // namespace mets::transport
