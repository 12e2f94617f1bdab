#include "common/ipc/packet.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::ipc {
namespace {

constexpr size_t kMaxPacket = 16 << 10;
constexpr size_t kControlSize = CMSG_SPACE(sizeof(int) * kMaxUnacknowledgedFds);

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("descriptor channel: malformed message: ", what));
}

absl::Status SocketError(absl::string_view call) {
  if (errno == ECONNRESET || errno == EPIPE) {
    return absl::UnavailableError("descriptor channel: the peer has gone");
  }
  return ErrnoToStatus(errno, absl::StrCat("descriptor channel: ", call));
}

// Takes ownership of every descriptor in the control data.
std::vector<UniqueFd> TakeDescriptors(msghdr* message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

absl::Status CheckHeader(absl::string_view bytes, PacketType type) {
  if (bytes.size() < sizeof(PacketHeader)) return Malformed("too short");
  METS_ASSIGN_OR_RETURN(
      PacketHeader header,
      FromBytes<PacketHeader>(bytes.substr(0, sizeof(PacketHeader))));
  if (header.magic != kPacketMagic) return Malformed("not a METS peer");
  if (header.version != kPacketVersion) {
    return Malformed(absl::StrCat("framing version ", header.version,
                                  ", this side speaks ", kPacketVersion));
  }
  if (header.type != type) {
    return Malformed(absl::StrCat("type ", static_cast<int>(header.type),
                                  " where ", static_cast<int>(type),
                                  " was expected"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SendPacket(int socket, PacketType type, absl::string_view body,
                        absl::Span<const int> fds, int flags) {
  PacketHeader header;
  header.type = type;
  iovec parts[2] = {{&header, sizeof(header)},
                    {const_cast<char*>(body.data()), body.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[kControlSize] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? SocketError("send") : absl::OkStatus();
}

absl::StatusOr<Packet> ReceivePacket(int socket, PacketType type, int flags) {
  char buffer[kMaxPacket];
  alignas(cmsghdr) char control[kControlSize];
  iovec part = {buffer, sizeof(buffer)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size;
  do {
    size = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return SocketError("receive");
  Packet packet;
  packet.fds = TakeDescriptors(&message);
  if (size == 0) {
    return absl::UnavailableError("descriptor channel: the peer has gone");
  }
  if (message.msg_flags & MSG_TRUNC) return Malformed("too long");
  if (message.msg_flags & MSG_CTRUNC) return Malformed("too many descriptors");
  const absl::string_view bytes(buffer, size);
  METS_RETURN_IF_ERROR(CheckHeader(bytes, type));
  packet.body = std::string(bytes.substr(sizeof(PacketHeader)));
  return packet;
}

}  // namespace mets::ipc
