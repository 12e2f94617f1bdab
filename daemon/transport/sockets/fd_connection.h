// FdConnection: the daemon's end of one client's descriptor socket.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_FD_CONNECTION_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_FD_CONNECTION_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::transport {

// One descriptor on its way to a client.
struct OutgoingFd {
  uint64_t id = 0;
  Bytes size;
  UniqueFd fd;  // A duplicate: sending never depends on the source's life.
};

// Sends descriptors in order, at most ipc::kMaxUnacknowledgedFds of them
// unacknowledged; the others wait in a bounded queue.
//
// Thread-safe, except that one thread at a time may receive from channel().
// Never blocks.
class FdConnection {
 public:
  // Descriptors that may wait for acknowledgements; a client that lets more
  // pile up does not read.
  static constexpr size_t kMaxQueuedFds = 4096;

  explicit FdConnection(ipc::DescriptorChannel channel);

  ipc::DescriptorChannel& channel() { return channel_; }

  // Queues descriptors of one kind and sends what may be sent. Returns the
  // sequence number of the message that carries the last one.
  // RESOURCE_EXHAUSTED when the queue is full: nothing is queued then.
  absl::StatusOr<uint64_t> Send(ipc::FdKind kind, std::vector<OutgoingFd> fds);

  // The client has received everything up to `seq`. INVALID_ARGUMENT when that
  // was never sent.
  absl::Status Acknowledge(uint64_t seq);

  // Sends what waits and may be sent: after a send that found the socket full.
  void Flush();

  // Shuts the socket down and drops what waits; later sends do nothing.
  void Close();

 private:
  struct Message {
    uint64_t seq;
    ipc::FdKind kind;
    std::vector<OutgoingFd> fds;
  };
  struct Unacknowledged {
    uint64_t seq;
    int fds;
  };

  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendMessage(const Message& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ipc::DescriptorChannel channel_;
  absl::Mutex mutex_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<Unacknowledged> sent_ ABSL_GUARDED_BY(mutex_);
  size_t queued_fds_ ABSL_GUARDED_BY(mutex_) = 0;
  int unacknowledged_fds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_seq_ ABSL_GUARDED_BY(mutex_) = 0;   // Given out.
  uint64_t last_sent_ ABSL_GUARDED_BY(mutex_) = 0;  // On the socket.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_FD_CONNECTION_H_
