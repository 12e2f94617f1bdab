#include "client/src/descriptor_inbox.h"

#include <errno.h>
#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace mets::client {

void DescriptorInbox::Put(ipc::Fds fds) {
  absl::MutexLock lock(&mutex_);
  auto& table = fds.kind == ipc::FdKind::kChunk ? chunks_ : extents_;
  for (size_t i = 0; i < fds.fds.size(); ++i) {
    table[fds.ids[i]] = Entry{std::move(fds.fds[i]), fds.sizes[i]};
  }
  received_ = fds.seq;
}

absl::StatusOr<DescriptorInbox::Entry> DescriptorInbox::TakeChunk(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  auto it = chunks_.find(id);
  if (it == chunks_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the descriptor of chunk ", id, " has not come"));
  }
  Entry entry = std::move(it->second);
  chunks_.erase(it);
  return entry;
}

absl::StatusOr<DescriptorInbox::Entry> DescriptorInbox::CopyExtent(
    uint64_t id) {
  absl::MutexLock lock(&mutex_);
  auto it = extents_.find(id);
  if (it == extents_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the descriptor of extent ", id, " has not come"));
  }
  const int copy = fcntl(it->second.fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return ErrnoToStatus(errno, "duplicate a descriptor");
  return Entry{UniqueFd(copy), it->second.size};
}

void DescriptorInbox::ForgetChunk(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  chunks_.erase(id);
}

void DescriptorInbox::ForgetExtent(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  extents_.erase(id);
}

void DescriptorInbox::Reset(bool new_epoch) {
  absl::MutexLock lock(&mutex_);
  received_ = 0;
  ++resets_;
  closed_ = false;
  if (!new_epoch) return;
  chunks_.clear();
  extents_.clear();
}

void DescriptorInbox::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

bool DescriptorInbox::WaitFor(uint64_t seq) {
  absl::MutexLock lock(&mutex_);
  const uint64_t resets = resets_;
  const auto ready = [this, seq,
                      resets]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || resets_ != resets || received_ >= seq;
  };
  mutex_.Await(absl::Condition(&ready));
  return !closed_ && resets_ == resets;
}

}  // namespace mets::client
