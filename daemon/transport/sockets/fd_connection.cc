#include "daemon/transport/sockets/fd_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::transport {
namespace {

// Descriptors per message: several messages fit under the limit, so that
// sending and acknowledging overlap.
constexpr size_t kFdsPerMessage = 64;

}  // namespace

FdConnection::FdConnection(ipc::DescriptorChannel channel)
    : channel_(std::move(channel)) {}

absl::StatusOr<uint64_t> FdConnection::Send(ipc::FdKind kind,
                                            std::vector<OutgoingFd> fds) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("descriptor socket is closed");
  if (queued_fds_ + fds.size() > kMaxQueuedFds) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "client does not take its descriptors: ", queued_fds_, " wait"));
  }
  queued_fds_ += fds.size();
  for (size_t begin = 0; begin < fds.size(); begin += kFdsPerMessage) {
    const size_t end = std::min(begin + kFdsPerMessage, fds.size());
    Message message{++last_seq_, kind, {}};
    std::move(fds.begin() + begin, fds.begin() + end,
              std::back_inserter(message.fds));
    queue_.push_back(std::move(message));
  }
  FlushLocked();
  return last_seq_;
}

absl::Status FdConnection::Acknowledge(uint64_t seq) {
  absl::MutexLock lock(&mutex_);
  if (seq > last_sent_) {
    return absl::InvalidArgumentError(
        absl::StrCat("client acknowledges descriptor message ", seq,
                     "; the last one sent is ", last_sent_));
  }
  while (!sent_.empty() && sent_.front().seq <= seq) {
    unacknowledged_fds_ -= sent_.front().fds;
    sent_.pop_front();
  }
  FlushLocked();
  return absl::OkStatus();
}

void FdConnection::Flush() {
  absl::MutexLock lock(&mutex_);
  FlushLocked();
}

void FdConnection::Close() {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  closed_ = true;
  queue_.clear();
  queued_fds_ = 0;
  shutdown(channel_.fd(), SHUT_RDWR);
}

void FdConnection::FlushLocked() {
  while (!closed_ && !queue_.empty()) {
    Message& message = queue_.front();
    const int count = static_cast<int>(message.fds.size());
    if (unacknowledged_fds_ + count > ipc::kMaxUnacknowledgedFds) return;
    // A full socket is tried again later; a broken one is noticed by the
    // thread that receives.
    if (!SendMessage(message).ok()) return;
    unacknowledged_fds_ += count;
    queued_fds_ -= count;
    last_sent_ = message.seq;
    sent_.push_back({message.seq, count});
    queue_.pop_front();
  }
}

absl::Status FdConnection::SendMessage(const Message& message) {
  std::vector<uint64_t> ids;
  std::vector<Bytes> sizes;
  std::vector<int> fds;
  for (const OutgoingFd& out : message.fds) {
    ids.push_back(out.id);
    sizes.push_back(out.size);
    fds.push_back(out.fd.get());
  }
  return channel_.SendFds(message.seq, message.kind, ids, sizes, fds);
}

}  // namespace mets::transport
