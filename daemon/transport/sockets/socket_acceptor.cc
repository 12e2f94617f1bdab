#include "daemon/transport/sockets/socket_acceptor.h"

#include <errno.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"

namespace mets::transport {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(50);

// Of a socket, as long as it is open; 0: none is.
ino_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketAcceptor>> SocketAcceptor::Start(
    Options options, std::vector<StreamListener> listeners,
    grpc::Server& server) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::unique_ptr<SocketAcceptor> acceptor(new SocketAcceptor(
      std::move(options), std::move(listeners), server, std::move(loop)));
  SocketAcceptor* self = acceptor.get();
  for (size_t i = 0; i < self->listeners_.size(); ++i) {
    METS_RETURN_IF_ERROR(self->Watch(i));
  }
  self->loop_->Start(kLookEvery, [self] { self->OnTick(); });
  return acceptor;
}

SocketAcceptor::SocketAcceptor(Options options,
                               std::vector<StreamListener> listeners,
                               grpc::Server& server,
                               std::unique_ptr<EventLoop> loop)
    : options_(std::move(options)),
      server_(server),
      listeners_(std::move(listeners)),
      loop_(std::move(loop)) {}

SocketAcceptor::~SocketAcceptor() { loop_->Stop(); }

absl::Status SocketAcceptor::Watch(size_t number) {
  return loop_->Watch(listeners_[number].fd(),
                      [this, number] { AcceptAll(number); });
}

void SocketAcceptor::OnTick() {
  for (auto it = resting_.begin(); it != resting_.end();) {
    it = Watch(*it).ok() ? resting_.erase(it) : std::next(it);
  }
  for (size_t i = 0; i < listeners_.size(); ++i) {
    if (!listeners_[i].IsLost()) continue;
    options_.on_lost(listeners_[i].place().path);
    lost_.insert(i);
  }
  for (auto it = lost_.begin(); it != lost_.end();) {
    it = Renew(*it) ? lost_.erase(it) : std::next(it);
  }
}

bool SocketAcceptor::Renew(size_t number) {
  const SocketPlace place = listeners_[number].place();
  absl::StatusOr<StreamListener> renewed = StreamListener::Listen(place);
  if (!renewed.ok()) return false;
  AcceptAll(number);  // Who came before.
  loop_->Unwatch(listeners_[number].fd());
  listeners_[number] = *std::move(renewed);
  if (!Watch(number).ok()) resting_.insert(number);
  options_.on_renewed(place.path);
  return true;
}

void SocketAcceptor::AcceptAll(size_t number) {
  const int listener = listeners_[number].fd();
  while (true) {
    UniqueFd socket(
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.ok()) {
      Adopt(std::move(socket), number);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      // The socket would be ready all the time.
      loop_->Unwatch(listener);
      resting_.insert(number);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void SocketAcceptor::Adopt(UniqueFd socket, size_t number) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return;
  }
  const int fd = socket.get();
  absl::MutexLock lock(&mutex_);
  Forget(fd);  // The connection that had this number is closed.
  const User user(number, peer.uid);
  if (!HasRoom(user)) return;
  connections_[fd] = {user, InodeOf(fd)};
  ++per_user_[user];
  grpc::AddInsecureChannelFromFd(&server_, socket.release());
}

absl::Status SocketAcceptor::CheckRoom(size_t listener, uid_t uid) {
  // Who has connected before counts, accepted or not.
  auto accepted = std::make_shared<absl::Notification>();
  loop_->Post([this, listener, accepted] {
    AcceptAll(listener);
    accepted->Notify();
  });
  accepted->WaitForNotification();
  absl::MutexLock lock(&mutex_);
  if (HasRoom(User(listener, uid))) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "user ", uid, " has ", options_.max_connections_per_user,
      " connections, which is the most that metsd allows with the descriptors "
      "that it may have; end some of the user's processes that use METS, or "
      "let metsd have more (LimitNOFILE= of its unit, or ulimit -n)"));
}

bool SocketAcceptor::HasRoom(const User& user) {
  const auto full = [this, &user] {
    const auto it = per_user_.find(user);
    return it != per_user_.end() &&
           it->second >= options_.max_connections_per_user;
  };
  if (full()) ForgetClosed();
  return !full();
}

void SocketAcceptor::Forget(int fd) {
  const auto it = connections_.find(fd);
  if (it == connections_.end()) return;
  const auto count = per_user_.find(it->second.user);
  if (--count->second == 0) per_user_.erase(count);
  connections_.erase(it);
}

void SocketAcceptor::ForgetClosed() {
  std::vector<int> closed;
  for (const auto& [fd, connection] : connections_) {
    if (InodeOf(fd) != connection.inode) closed.push_back(fd);
  }
  for (int fd : closed) Forget(fd);
}

}  // namespace mets::transport
