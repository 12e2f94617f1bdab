#include "daemon/transport/sockets/fd_server.h"

#include <poll.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"

namespace mets::transport {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr uint32_t kVersion = 1;

// A descriptor's number may have been reused since the loop saw an event.
bool HasEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  return poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FdServer>> FdServer::Create(
    FdServerOptions options, std::vector<ipc::DescriptorListener> listeners,
    std::vector<WatchedProcess> expected, SessionRegistry& registry,
    const Clock& clock) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  std::unique_ptr<FdServer> server(new FdServer(
      options, std::move(listeners), std::move(loop), registry, clock));
  for (size_t i = 0; i < server->listeners_.size(); ++i) {
    METS_RETURN_IF_ERROR(server->WatchListener(i));
  }
  METS_RETURN_IF_ERROR(server->WatchExpected(std::move(expected)));
  return server;
}

FdServer::FdServer(FdServerOptions options,
                   std::vector<ipc::DescriptorListener> listeners,
                   std::unique_ptr<EventLoop> loop, SessionRegistry& registry,
                   const Clock& clock)
    : options_(options),
      listeners_(std::move(listeners)),
      registry_(registry),
      clock_(clock),
      loop_(std::move(loop)) {}

FdServer::~FdServer() { Stop(); }

void FdServer::Start() {
  loop_->Start(kTick, [this] { OnTick(); });
}

void FdServer::Stop() {
  loop_->Stop();
  for (auto& [id, connection] : connections_) {
    if (connection->channel != nullptr) connection->channel->Close();
  }
  connections_.clear();
}

const UniqueFd* FdServer::FindPidfd(SessionId session) const {
  const auto expected = expected_.find(session);
  if (expected != expected_.end()) return &expected->second;
  const auto it = connections_.find(registry_.ConnectionOf(session));
  return it == connections_.end() ? nullptr : &it->second->peer.pidfd;
}

bool FdServer::AnswersWithin(absl::Duration time) {
  auto answered = std::make_shared<absl::Notification>();
  loop_->Post([answered] { answered->Notify(); });
  return answered->WaitForNotificationWithTimeout(time);
}

void FdServer::EndProcesses(std::vector<SessionId> sessions,
                            absl::Duration grace) {
  loop_->Post([this, sessions = std::move(sessions), grace] {
    for (SessionId session : sessions) {
      const UniqueFd* pidfd = FindPidfd(session);
      // Who cannot be reached is seen to live on, by whoever asked for it.
      if (pidfd != nullptr) {
        ender_.End(pidfd->get(), clock_.Now() + grace).IgnoreError();
      }
    }
  });
}

absl::Status FdServer::WatchExpected(std::vector<WatchedProcess> expected) {
  for (WatchedProcess& process : expected) {
    const SessionId session = process.session;
    const int pidfd = process.pidfd.get();
    METS_RETURN_IF_ERROR(loop_->Watch(pidfd, [this, session, pidfd] {
      if (!HasEnded(pidfd)) return;
      loop_->Unwatch(pidfd);
      expected_.erase(session);
      registry_.ExpectedProcessEnded(session);
    }));
    expected_[session] = std::move(process.pidfd);
  }
  return absl::OkStatus();
}

absl::Status FdServer::WatchListener(size_t number) {
  return loop_->Watch(listeners_[number].fd(),
                      [this, number] { AcceptAll(number); });
}

bool FdServer::Renew(size_t number) {
  absl::StatusOr<ipc::DescriptorListener> renewed =
      options_.listen_anew(number);
  if (!renewed.ok()) return false;
  AcceptAll(number);  // Who came before.
  loop_->Unwatch(listeners_[number].fd());
  listeners_[number] = *std::move(renewed);
  if (!WatchListener(number).ok()) resting_.insert(number);
  return true;
}

void FdServer::AcceptAll(size_t number) {
  ipc::DescriptorListener& listener = listeners_[number];
  while (true) {
    absl::StatusOr<ipc::DescriptorChannel> channel = listener.Accept();
    if (absl::IsResourceExhausted(channel.status())) {
      // No descriptors left: the listener would be ready all the time.
      loop_->Unwatch(listener.fd());
      resting_.insert(number);
    }
    if (!channel.ok()) return;
    Adopt(*std::move(channel), number);
  }
}

bool FdServer::TooManySilent(uid_t uid, size_t listener) const {
  size_t all = 0;
  size_t of_uid = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection->admitted) continue;
    ++all;
    if (connection->peer.uid == uid && connection->listener == listener) {
      ++of_uid;
    }
  }
  return all > options_.max_silent_peers ||
         of_uid > options_.max_silent_peers_per_uid;
}

void FdServer::Adopt(ipc::DescriptorChannel channel, size_t listener) {
  absl::StatusOr<ipc::Peer> peer = channel.GetPeer();
  if (!peer.ok()) return;
  auto connection = std::make_unique<Connection>();
  connection->channel = std::make_shared<FdConnection>(std::move(channel));
  connection->peer = *std::move(peer);
  connection->listener = listener;
  connection->accepted = clock_.Now();
  const uint64_t id = next_id_++;
  const int fd = connection->channel->channel().fd();
  const uid_t uid = connection->peer.uid;
  if (!loop_->Watch(fd, [this, id] { OnSocket(id); }).ok()) return;
  connections_[id] = std::move(connection);
  // Its Hello may be here: a crowd that comes back at once is not silent.
  OnSocket(id);
  const auto it = connections_.find(id);
  if (it == connections_.end() || it->second->admitted) return;
  // Without a word: it may try again.
  if (TooManySilent(uid, listener)) CloseSocket(id);
}

void FdServer::OnSocket(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end() || it->second->channel == nullptr) return;
  Connection& connection = *it->second;
  if (!connection.admitted) {
    const absl::Status status = ReadHello(id, connection);
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) {
      ipc::Welcome refusal;
      refusal.error = std::string(status.message());
      connection.channel->channel().SendWelcome(refusal).IgnoreError();
      CloseSocket(id);
    }
    return;
  }
  while (true) {
    const absl::StatusOr<uint64_t> seq =
        connection.channel->channel().ReceiveFdsReceived();
    if (absl::IsDeadlineExceeded(seq.status())) return;
    if (!seq.ok() || !connection.channel->Acknowledge(*seq).ok()) {
      CloseSocket(id);
      return;
    }
  }
}

absl::Status FdServer::ReadHello(uint64_t id, Connection& connection) {
  UniqueFd sent_pidfd;
  ipc::DescriptorChannel& channel = connection.channel->channel();
  METS_ASSIGN_OR_RETURN(const ipc::Hello hello,
                        channel.ReceiveHello(&sent_pidfd));
  if (hello.version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("this client speaks version ", hello.version,
                     " of the descriptor channel, metsd speaks version ",
                     kVersion, ": use libmets and metsd of the same release"));
  }
  METS_RETURN_IF_ERROR(
      options_.check_room(connection.listener, connection.peer.uid));
  ProcessIdentity process;
  METS_RETURN_IF_ERROR(Identify(connection, std::move(sent_pidfd), &process));
  METS_ASSIGN_OR_RETURN(
      const std::string token,
      registry_.Admit(id, process, connection.channel, connection.listener));
  connection.admitted = true;
  METS_RETURN_IF_ERROR(loop_->Watch(connection.peer.pidfd.get(),
                                    [this, id] { OnProcessEnd(id); }));
  ipc::Welcome welcome;
  welcome.token = token;
  welcome.epoch = options_.epoch.value();
  return channel.SendWelcome(welcome);
}

absl::Status FdServer::Identify(Connection& connection, UniqueFd sent_pidfd,
                                ProcessIdentity* process) {
  ipc::Peer& peer = connection.peer;
  if (!peer.pidfd.ok()) peer.pidfd = std::move(sent_pidfd);
  if (!peer.pidfd.ok() && peer.pid > 0) {
    METS_ASSIGN_OR_RETURN(peer.pidfd, OpenPidfd(peer.pid));
  }
  if (!peer.pidfd.ok()) {
    return absl::FailedPreconditionError(
        "metsd cannot see when this process ends: it sent no pidfd");
  }
  process->uid = peer.uid;
  process->pid = peer.pid;
  if (peer.pid > 0) {
    METS_ASSIGN_OR_RETURN(process->start_time, ProcessStartTime(peer.pid));
  }
  return absl::OkStatus();
}

void FdServer::OnProcessEnd(uint64_t id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  if (!HasEnded(it->second->peer.pidfd.get())) return;
  registry_.ProcessEnded(id);
  Drop(id);
}

void FdServer::CloseSocket(uint64_t id) {
  Connection& connection = *connections_.at(id);
  loop_->Unwatch(connection.channel->channel().fd());
  connection.channel->Close();
  connection.channel = nullptr;
  if (!connection.admitted || !registry_.ConnectionClosed(id)) Drop(id);
}

void FdServer::Drop(uint64_t id) {
  Connection& connection = *connections_.at(id);
  if (connection.channel != nullptr) {
    loop_->Unwatch(connection.channel->channel().fd());
    connection.channel->Close();
  }
  if (connection.admitted) loop_->Unwatch(connection.peer.pidfd.get());
  connections_.erase(id);
}

void FdServer::OnTick() {
  for (auto it = resting_.begin(); it != resting_.end();) {
    it = WatchListener(*it).ok() ? resting_.erase(it) : std::next(it);
  }
  for (size_t i = 0; i < listeners_.size(); ++i) {
    if (!listeners_[i].IsLost()) continue;
    options_.on_lost(listeners_[i].path());
    lost_.insert(i);
  }
  for (auto it = lost_.begin(); it != lost_.end();) {
    it = Renew(*it) ? lost_.erase(it) : std::next(it);
  }
  const absl::Time now = clock_.Now();
  std::vector<uint64_t> silent;
  std::vector<uint64_t> replaced;
  for (auto& [id, connection] : connections_) {
    if (connection->channel == nullptr) {
      if (!registry_.Knows(id)) replaced.push_back(id);
    } else if (connection->admitted) {
      connection->channel->Flush();
    } else if (now - connection->accepted > options_.hello_timeout) {
      silent.push_back(id);
    }
  }
  ender_.Tick(now);
  for (uint64_t id : silent) CloseSocket(id);
  for (uint64_t id : replaced) Drop(id);
}

}  // namespace mets::transport
