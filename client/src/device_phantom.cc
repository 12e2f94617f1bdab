// Device: phantom evictions, a test mode. A buffer that could be evicted, and
// that nothing uses at the moment, cannot be touched until an op names it: who
// has not announced an access is found out even where nothing is tight. Only
// the access changes; the memory stays, and the daemon does not hear of it.
#include "client/src/device.h"
#include "client/src/log.h"
#include "common/base/check.h"

namespace mets::client {

void Device::Hide(Buffer* buffer) {
  {
    absl::MutexLock lock(&mutex_);
    if (buffer->mobility != Mobility::kMovable ||
        !buffer->word.TryStartEviction()) {
      return;
    }
    NoteAway(buffer);
  }
  METS_CHECK_OK(driver_->BlockAccess(
      buffer->base.load(std::memory_order_relaxed), HandlesOf(buffer->chunks)));
  {
    absl::MutexLock lock(&mutex_);
    METS_CHECK(buffer->word.TryMove(Phase::kBlocking, Phase::kHidden));
    changed_.SignalAll();
  }
  phantoms_->NoteHidden();
  if (buffer->word.freed()) TryDispose(buffer);
}

void Device::UnhideForEviction(uint64_t buffer_id) {
  Buffer* buffer;
  {
    absl::MutexLock lock(&mutex_);
    buffer = buffers_.Find(buffer_id);
  }
  if (buffer != nullptr) Unhide(buffer);
}

void Device::NoteUser(Op& op) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < op.pin_count; ++i) {
    op.pin(i).buffer->last_op = op.name;
  }
}

void Device::NoteMissed(const Access& access, const Buffer& buffer) {
  if (phantoms_ == nullptr) return;
  phantoms_->Note(access, Bytes(static_cast<int64_t>(buffer.bytes)),
                  buffer.last_op);
}

void Device::SayMissedAccesses() {
  if (phantoms_ == nullptr || said_missed_.exchange(true)) return;
  for (const std::string& line : phantoms_->Report()) {
    Log(LogLevel::kWarning, line);
  }
}

}  // namespace mets::client
