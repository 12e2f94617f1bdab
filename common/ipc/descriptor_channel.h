// The descriptor channel: a Unix socket that carries what gRPC cannot, file
// descriptors and the peer's credentials. A session is its connection here.
#ifndef METS_COMMON_IPC_DESCRIPTOR_CHANNEL_H_
#define METS_COMMON_IPC_DESCRIPTOR_CHANNEL_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/ipc/socket_file.h"

namespace mets::ipc {

// Who is at the other end of a connection.
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;   // 0 when the peer lives in another pid namespace.
  UniqueFd pidfd;  // Readable when the process has ended.
};

// Token: 32 unguessable bytes.
inline constexpr size_t kTokenSize = 32;

// First message, client to daemon, with the client's own pidfd attached (used
// where SO_PEERPIDFD does not exist; checked against SO_PEERCRED).
struct Hello {
  uint32_t version = 1;
};

// Answer to Hello.
struct Welcome {
  uint32_t version = 1;
  std::string token;  // kTokenSize bytes; empty when `error` is set.
  uint64_t epoch = 0;
  std::string error;  // Why the daemon refuses this client.
};

enum class FdKind : uint32_t { kChunk = 1, kExtent = 2 };

// Descriptors on their way to a client; `fds` and `ids` go pairwise.
struct Fds {
  uint64_t seq = 0;  // 1, 2, 3, … in each connection.
  FdKind kind = FdKind::kChunk;
  std::vector<uint64_t> ids;
  std::vector<Bytes> sizes;
  std::vector<UniqueFd> fds;
};

// At most this many descriptors of one session are unacknowledged: the
// kernel counts descriptors in flight per sending uid, so that one client
// that does not read would block all.
inline constexpr int kMaxUnacknowledgedFds = 253;

// One end of a connected descriptor socket (SOCK_SEQPACKET).
//
// Receive may be called by one thread while others send; sends are serialised
// by the caller. All calls return UNAVAILABLE once the peer has gone, and
// INVALID_ARGUMENT for a malformed message; descriptors that come where none
// are expected are closed.
class DescriptorChannel {
 public:
  explicit DescriptorChannel(UniqueFd socket);
  DescriptorChannel(DescriptorChannel&&) = default;
  DescriptorChannel& operator=(DescriptorChannel&&) = default;

  // Connects to a daemon's socket. NOT_FOUND when the path does not exist,
  // PERMISSION_DENIED when this user may not connect, UNAVAILABLE when nobody
  // listens; each text names the path and says what to do.
  static absl::StatusOr<DescriptorChannel> Connect(const std::string& path);

  int fd() const { return socket_.get(); }

  // The peer's credentials: SO_PEERCRED and SO_PEERPIDFD.
  absl::StatusOr<Peer> GetPeer() const;

  // Client side. SendHello attaches this process's pidfd.
  absl::Status SendHello(const Hello& hello);
  absl::StatusOr<Welcome> ReceiveWelcome(absl::Duration timeout);
  // Blocks until a message comes.
  absl::StatusOr<Fds> ReceiveFds();
  absl::Status SendFdsReceived(uint64_t seq);

  // Daemon side. Never blocks: DEADLINE_EXCEEDED when nothing is there
  // (Receive) or the peer's queue is full (Send).
  // `pidfd` receives the descriptor that came with the Hello, if any;
  // INVALID_ARGUMENT when it is not the sender's own pidfd.
  absl::StatusOr<Hello> ReceiveHello(UniqueFd* pidfd);
  absl::Status SendWelcome(const Welcome& welcome);
  // REQUIRES: at most kMaxUnacknowledgedFds descriptors.
  absl::Status SendFds(uint64_t seq, FdKind kind,
                       absl::Span<const uint64_t> ids,
                       absl::Span<const Bytes> sizes,
                       absl::Span<const int> fds);
  absl::StatusOr<uint64_t> ReceiveFdsReceived();

 private:
  UniqueFd socket_;
};

// A listening descriptor socket.
class DescriptorListener {
 public:
  // Binds `path` with `mode`. A socket file that nobody listens on is
  // replaced; ALREADY_EXISTS, naming the path, when somebody does.
  static absl::StatusOr<DescriptorListener> Listen(const std::string& path,
                                                   mode_t mode);
  // Takes over a socket that listens already; `path` is for error texts.
  static DescriptorListener Adopt(UniqueFd socket, std::string path);
  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  // As of SocketFile; never when the socket was adopted.
  bool IsLost() { return file_.IsLost(); }

  // DEADLINE_EXCEEDED when no connection waits. Does not block.
  absl::StatusOr<DescriptorChannel> Accept();

 private:
  DescriptorListener(UniqueFd socket, std::string path, SocketFile file);

  UniqueFd socket_;
  std::string path_;
  SocketFile file_;
};

// kTokenSize bytes from the kernel's random source.
std::string NewToken();

}  // namespace mets::ipc

#endif  // METS_COMMON_IPC_DESCRIPTOR_CHANNEL_H_
