// Packets of the descriptor channel: bytes and descriptors that travel
// together, and the header that all of them begin with. Private to this
// folder.
#ifndef METS_COMMON_IPC_PACKET_H_
#define METS_COMMON_IPC_PACKET_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/unique_fd.h"

namespace mets::ipc {

// "METS" and the version of the framing, not of the protocol.
inline constexpr uint32_t kPacketMagic = 0x5354454d;
inline constexpr uint16_t kPacketVersion = 1;

enum class PacketType : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kFds = 3,
  kFdsReceived = 4,
};

// Both ends run on one machine: native byte order, no padding.
struct PacketHeader {
  uint32_t magic = kPacketMagic;
  uint16_t version = kPacketVersion;
  PacketType type = PacketType::kHello;
};
static_assert(sizeof(PacketHeader) == 8);

// A packet as it arrived; the header is checked and removed.
struct Packet {
  std::string body;
  std::vector<UniqueFd> fds;
};

// Sends one packet. `flags` for sendmsg, e.g. MSG_DONTWAIT. DEADLINE_EXCEEDED
// when it would block, UNAVAILABLE when the peer has gone,
// RESOURCE_EXHAUSTED when too many descriptors are in flight.
absl::Status SendPacket(int socket, PacketType type, absl::string_view body,
                        absl::Span<const int> fds, int flags);

// Receives one packet of `type`. Errors as above; INVALID_ARGUMENT for another
// type, a bad header, and for bytes or descriptors beyond the limits (their
// descriptors are closed).
absl::StatusOr<Packet> ReceivePacket(int socket, PacketType type, int flags);

// A struct as bytes, and back. The size must fit exactly.
template <typename T>
absl::string_view AsBytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return absl::string_view(reinterpret_cast<const char*>(&value), sizeof(T));
}
template <typename T>
absl::StatusOr<T> FromBytes(absl::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() != sizeof(T)) {
    return absl::InvalidArgumentError("descriptor channel: wrong size");
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace mets::ipc

#endif  // METS_COMMON_IPC_PACKET_H_
