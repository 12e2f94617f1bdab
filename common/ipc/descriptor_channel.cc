#include "common/ipc/descriptor_channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/ipc/packet.h"
#include "common/ipc/socket_file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace mets::ipc {
namespace {

constexpr size_t kMaxErrorText = 4096;

struct HelloBody {
  uint32_t version;
  uint32_t reserved;
};
struct WelcomeBody {  // The error text follows.
  uint32_t version;
  uint32_t has_token;
  uint64_t epoch;
  char token[kTokenSize];
};
struct FdsBody {  // `count` FdsEntry follow.
  uint64_t seq;
  uint32_t kind;
  uint32_t count;
};
struct FdsEntry {
  uint64_t id;
  uint64_t size;
};
struct FdsReceivedBody {
  uint64_t seq;
};

absl::Status NoDescriptorsExpected(const Packet& packet) {
  if (packet.fds.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "descriptor channel: descriptors where none are expected");
}

// A Hello's pidfd must be the sender's own.
absl::Status CheckPidfd(int socket, int pidfd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoToStatus(errno, "SO_PEERCRED");
  }
  METS_ASSIGN_OR_RETURN(const pid_t pid, PidOfPidfd(pidfd));
  if (pid == credentials.pid) return absl::OkStatus();
  if (pid == -1) return absl::UnavailableError("the peer process has ended");
  return absl::InvalidArgumentError(
      absl::StrCat("descriptor channel: process ", credentials.pid,
                   " sent a pidfd of another process (", pid, ")"));
}

absl::Status ConnectError(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(absl::StrCat(
          "no metsd at ", path,
          ": the socket does not exist; start metsd or set METS_RUN_DIR"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat("this user may not connect to metsd at ", path,
                       ": ask its operator to add you to the socket's group"));
    case ECONNREFUSED:
      return absl::UnavailableError(absl::StrCat(
          "nobody listens at ", path, ": metsd is not running; start it"));
    case EAGAIN:
      return absl::UnavailableError(absl::StrCat(
          "metsd at ", path, " does not accept connections; is it stopped?"));
    default:
      return ErrnoToStatus(error, absl::StrCat("connect to ", path));
  }
}

void SetSendTimeout(int socket, time_t seconds) {
  const timeval timeout = {seconds, 0};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

absl::StatusOr<Fds> ParseFds(Packet packet) {
  const absl::Status bad =
      absl::InvalidArgumentError("descriptor channel: malformed Fds message");
  const absl::string_view body = packet.body;
  if (body.size() < sizeof(FdsBody)) return bad;
  METS_ASSIGN_OR_RETURN(FdsBody head,
                        FromBytes<FdsBody>(body.substr(0, sizeof(FdsBody))));
  const auto kind = static_cast<FdKind>(head.kind);
  if (head.count != packet.fds.size() || head.count == 0 || head.seq == 0 ||
      (kind != FdKind::kChunk && kind != FdKind::kExtent) ||
      body.size() != sizeof(FdsBody) + head.count * sizeof(FdsEntry)) {
    return bad;
  }
  Fds fds;
  fds.seq = head.seq;
  fds.kind = kind;
  for (uint32_t i = 0; i < head.count; ++i) {
    METS_ASSIGN_OR_RETURN(
        FdsEntry entry,
        FromBytes<FdsEntry>(body.substr(sizeof(FdsBody) + i * sizeof(FdsEntry),
                                        sizeof(FdsEntry))));
    if (entry.id == 0 || entry.size == 0 || entry.size > uint64_t{1} << 62) {
      return bad;
    }
    fds.ids.push_back(entry.id);
    fds.sizes.push_back(Bytes(static_cast<int64_t>(entry.size)));
  }
  fds.fds = std::move(packet.fds);
  return fds;
}

}  // namespace

DescriptorChannel::DescriptorChannel(UniqueFd socket)
    : socket_(std::move(socket)) {}

absl::StatusOr<DescriptorChannel> DescriptorChannel::Connect(
    const std::string& path) {
  METS_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoToStatus(errno, "socket");
  SetSendTimeout(socket.get(), 5);  // Also bounds connect.
  int result;
  do {
    result = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                     sizeof(address));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return ConnectError(errno, path);
  SetSendTimeout(socket.get(), 0);
  return DescriptorChannel(std::move(socket));
}

absl::StatusOr<Peer> DescriptorChannel::GetPeer() const {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoToStatus(errno, "SO_PEERCRED");
  }
  Peer peer;
  peer.uid = credentials.uid;
  peer.pid = credentials.pid;
  int pidfd = -1;
  size = sizeof(pidfd);
  if (getsockopt(fd(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
    peer.pidfd.reset(pidfd);
  }
  return peer;
}

absl::Status DescriptorChannel::SendHello(const Hello& hello) {
  const HelloBody body = {hello.version, 0};
  absl::StatusOr<UniqueFd> pidfd = OpenPidfd(getpid());
  if (!pidfd.ok()) {
    return SendPacket(fd(), PacketType::kHello, AsBytes(body), {}, 0);
  }
  const int fds[] = {pidfd->get()};
  return SendPacket(fd(), PacketType::kHello, AsBytes(body), fds, 0);
}

absl::StatusOr<Welcome> DescriptorChannel::ReceiveWelcome(
    absl::Duration timeout) {
  pollfd waiting = {fd(), POLLIN, 0};
  const int64_t wait_ms = std::clamp<int64_t>(
      absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))), 0,
      absl::ToInt64Milliseconds(absl::Hours(24)));
  int ready;
  do {
    ready = poll(&waiting, 1, static_cast<int>(wait_ms));
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) return ErrnoToStatus(errno, "poll");
  if (ready == 0) {
    return absl::DeadlineExceededError(absl::StrCat(
        "metsd did not answer within ", absl::FormatDuration(timeout)));
  }
  METS_ASSIGN_OR_RETURN(
      Packet packet, ReceivePacket(fd(), PacketType::kWelcome, MSG_DONTWAIT));
  METS_RETURN_IF_ERROR(NoDescriptorsExpected(packet));
  const absl::string_view bytes = packet.body;
  if (bytes.size() < sizeof(WelcomeBody)) {
    return absl::InvalidArgumentError("descriptor channel: short Welcome");
  }
  METS_ASSIGN_OR_RETURN(WelcomeBody body, FromBytes<WelcomeBody>(bytes.substr(
                                              0, sizeof(WelcomeBody))));
  Welcome welcome;
  welcome.version = body.version;
  welcome.epoch = body.epoch;
  welcome.error = std::string(bytes.substr(sizeof(WelcomeBody)));
  if (body.has_token != 0) welcome.token.assign(body.token, kTokenSize);
  if (welcome.error.empty() && welcome.token.empty()) {
    return absl::InvalidArgumentError(
        "descriptor channel: Welcome with neither token nor error");
  }
  return welcome;
}

absl::StatusOr<Fds> DescriptorChannel::ReceiveFds() {
  METS_ASSIGN_OR_RETURN(Packet packet,
                        ReceivePacket(fd(), PacketType::kFds, 0));
  return ParseFds(std::move(packet));
}

absl::Status DescriptorChannel::SendFdsReceived(uint64_t seq) {
  const FdsReceivedBody body = {seq};
  return SendPacket(fd(), PacketType::kFdsReceived, AsBytes(body), {}, 0);
}

absl::StatusOr<Hello> DescriptorChannel::ReceiveHello(UniqueFd* pidfd) {
  METS_ASSIGN_OR_RETURN(Packet packet,
                        ReceivePacket(fd(), PacketType::kHello, MSG_DONTWAIT));
  METS_ASSIGN_OR_RETURN(HelloBody body, FromBytes<HelloBody>(packet.body));
  if (packet.fds.size() > 1) {
    return absl::InvalidArgumentError(
        "descriptor channel: more than one descriptor in a Hello");
  }
  if (!packet.fds.empty()) {
    METS_RETURN_IF_ERROR(CheckPidfd(fd(), packet.fds[0].get()));
    *pidfd = std::move(packet.fds[0]);
  }
  Hello hello;
  hello.version = body.version;
  return hello;
}

absl::Status DescriptorChannel::SendWelcome(const Welcome& welcome) {
  METS_CHECK(welcome.token.empty() || welcome.token.size() == kTokenSize)
      << "token of " << welcome.token.size() << " bytes";
  WelcomeBody body = {};
  body.version = welcome.version;
  body.has_token = welcome.token.empty() ? 0 : 1;
  body.epoch = welcome.epoch;
  welcome.token.copy(body.token, kTokenSize);
  const std::string message =
      absl::StrCat(AsBytes(body), welcome.error.substr(0, kMaxErrorText));
  return SendPacket(fd(), PacketType::kWelcome, message, {}, MSG_DONTWAIT);
}

absl::Status DescriptorChannel::SendFds(uint64_t seq, FdKind kind,
                                        absl::Span<const uint64_t> ids,
                                        absl::Span<const Bytes> sizes,
                                        absl::Span<const int> fds) {
  METS_CHECK(fds.size() <= static_cast<size_t>(kMaxUnacknowledgedFds) &&
             fds.size() == ids.size() && fds.size() == sizes.size())
      << fds.size() << " descriptors, " << ids.size() << " ids, "
      << sizes.size() << " sizes";
  const FdsBody head = {seq, static_cast<uint32_t>(kind),
                        static_cast<uint32_t>(fds.size())};
  std::string body(AsBytes(head));
  for (size_t i = 0; i < fds.size(); ++i) {
    const FdsEntry entry = {ids[i], static_cast<uint64_t>(sizes[i].count())};
    absl::StrAppend(&body, AsBytes(entry));
  }
  return SendPacket(fd(), PacketType::kFds, body, fds, MSG_DONTWAIT);
}

absl::StatusOr<uint64_t> DescriptorChannel::ReceiveFdsReceived() {
  METS_ASSIGN_OR_RETURN(
      Packet packet,
      ReceivePacket(fd(), PacketType::kFdsReceived, MSG_DONTWAIT));
  METS_RETURN_IF_ERROR(NoDescriptorsExpected(packet));
  METS_ASSIGN_OR_RETURN(FdsReceivedBody body,
                        FromBytes<FdsReceivedBody>(packet.body));
  return body.seq;
}

std::string NewToken() {
  std::string token(kTokenSize, '\0');
  size_t used = 0;
  while (used < kTokenSize) {
    const ssize_t n = getrandom(&token[used], kTokenSize - used, 0);
    METS_CHECK(n > 0 || errno == EINTR) << "getrandom: errno " << errno;
    if (n > 0) used += n;
  }
  return token;
}

}  // namespace mets::ipc
