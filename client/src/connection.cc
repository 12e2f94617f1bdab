#include "client/src/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <grpcpp/create_channel_posix.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/src/fork_guard.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/ipc/socket_file.h"

namespace mets::client {
namespace {

constexpr absl::Duration kHandshakeTimeout = absl::Seconds(10);
// How long the stream may outlive the descriptor channel.
constexpr absl::Duration kLastWords = absl::Seconds(1);

// Adds the group that may connect.
absl::Status WithGroup(const absl::Status& status, const std::string& path) {
  struct stat info;
  if (!absl::IsPermissionDenied(status) || stat(path.c_str(), &info) != 0) {
    return status;
  }
  group entry = {};
  group* found = nullptr;
  char text[4096];
  getgrgid_r(info.st_gid, &entry, text, sizeof(text), &found);
  const std::string name =
      found != nullptr ? found->gr_name : absl::StrCat(info.st_gid);
  return absl::PermissionDeniedError(
      absl::StrCat(status.message(), " (group '", name, "' owns it)"));
}

// What metsd answers to Hello.
absl::StatusOr<ipc::Welcome> Greet(ipc::DescriptorChannel& channel,
                                   const std::string& path) {
  absl::Status sent = channel.SendHello(ipc::Hello());
  absl::StatusOr<ipc::Welcome> welcome =
      sent.ok() ? channel.ReceiveWelcome(absl::Seconds(5)) : sent;
  if (!absl::IsUnavailable(welcome.status())) return welcome;
  return absl::UnavailableError(absl::StrCat(
      "metsd has closed the connection to ", path,
      ": it is stopping, or this user has too many new connections at once; "
      "try again"));
}

absl::StatusOr<UniqueFd> ConnectStream(const std::string& path) {
  METS_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::SocketAddress(path));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoToStatus(errno, "socket");
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("connect to ", path));
  }
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  return socket;
}

absl::Status FromGrpc(const grpc::Status& status) {
  const std::string text = absl::StrCat(
      "metsd: ", status.error_message().empty() ? "the stream has ended"
                                                : status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::PERMISSION_DENIED:
      return absl::FailedPreconditionError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const std::string& run_dir, std::function<void(ipc::Fds)> on_fds) {
  const std::string path = absl::StrCat(run_dir, "/fd.sock");
  absl::StatusOr<ipc::DescriptorChannel> channel =
      ipc::DescriptorChannel::Connect(path);
  if (!channel.ok()) return WithGroup(channel.status(), path);
  METS_ASSIGN_OR_RETURN(ipc::Welcome welcome, Greet(*channel, path));
  if (!welcome.error.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("metsd refuses this process: ", welcome.error));
  }
  METS_ASSIGN_OR_RETURN(UniqueFd stream,
                        ConnectStream(absl::StrCat(run_dir, "/session.sock")));
  auto connection = absl::WrapUnique(new Connection(
      *std::move(channel), std::move(stream), std::move(on_fds)));
  connection->token_ = std::move(welcome.token);
  connection->epoch_ = welcome.epoch;
  return connection;
}

Connection::Connection(ipc::DescriptorChannel channel, UniqueFd stream_socket,
                       std::function<void(ipc::Fds)> on_fds)
    : channel_(std::move(channel)),
      on_fds_(std::move(on_fds)),
      stream_fd_(stream_socket.get()) {
  CloseInChild(channel_.fd());
  CloseInChild(stream_fd_);
  grpc_channel_ =
      grpc::CreateInsecureChannelFromFd("metsd", stream_socket.release());
  stream_ = v1::SessionService::NewStub(grpc_channel_)->Connect(&context_);
  writer_ = std::thread([this] { Write(); });
  receiver_ = std::thread([this] { ReceiveDescriptors(); });
}

Connection::~Connection() {
  Close();
  writer_.join();
  receiver_.join();
  (void)Finish();
  DoNotCloseInChild(channel_.fd());
  DoNotCloseInChild(stream_fd_);
}

absl::StatusOr<v1::Welcome> Connection::Handshake(v1::Hello hello) {
  hello.set_token(token_);
  v1::ClientMessage message;
  *message.mutable_hello() = std::move(hello);
  Send(std::move(message));
  v1::DaemonMessage answer;
  while (stream_->Read(&answer)) {
    if (answer.has_welcome()) {
      welcomed_ = true;
      return answer.welcome();
    }
    if (!answer.has_bye()) continue;
    return answer.bye().restarting()
               ? absl::UnavailableError("metsd is restarting")
               : absl::FailedPreconditionError(absl::StrCat(
                     "metsd refuses this process: ", answer.bye().reason()));
  }
  if (closed_) {
    return absl::UnavailableError("metsd did not answer in time");
  }
  return FromGrpc(Finish());
}

grpc::Status Connection::Finish() {
  if (finished_) return grpc::Status::OK;
  finished_ = true;
  v1::DaemonMessage rest;
  while (stream_->Read(&rest)) {
  }
  return stream_->Finish();
}

bool Connection::Read(v1::DaemonMessage* message) {
  return stream_->Read(message);
}

void Connection::Send(v1::ClientMessage message) {
  absl::MutexLock lock(&mutex_);
  if (!stop_writing_ && !finish_writing_) outbox_.push_back(std::move(message));
}

void Connection::FinishWriting() {
  absl::MutexLock lock(&mutex_);
  finish_writing_ = true;
}

void Connection::Close() {
  if (closed_.exchange(true)) return;
  context_.TryCancel();
  shutdown(channel_.fd(), SHUT_RDWR);
  absl::MutexLock lock(&mutex_);
  stop_writing_ = true;
}

void Connection::Write() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_writing_ || finish_writing_ || !outbox_.empty();
  };
  for (;;) {
    v1::ClientMessage message;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (stop_writing_) return;
      if (outbox_.empty()) break;
      message = std::move(outbox_.front());
      outbox_.pop_front();
    }
    if (!stream_->Write(message)) {
      Close();
      return;
    }
  }
  stream_->WritesDone();
}

void Connection::ReceiveDescriptors() {
  const absl::Time give_up = SteadyNow() + kHandshakeTimeout;
  while (!closed_) {
    pollfd waiting = {channel_.fd(), POLLIN, 0};
    const int ready = poll(&waiting, 1, welcomed_ ? -1 : 1000);
    if (ready == 0 && !welcomed_ && SteadyNow() > give_up) break;
    if (ready <= 0) continue;
    absl::StatusOr<ipc::Fds> fds = channel_.ReceiveFds();
    if (!fds.ok()) break;
    const uint64_t seq = fds->seq;
    on_fds_(*std::move(fds));
    if (!channel_.SendFdsReceived(seq).ok()) break;
  }
  // The stream may still bring the reason.
  {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stop_writing_), kLastWords);
  }
  Close();
}

}  // namespace mets::client
