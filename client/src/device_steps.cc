// Device: the training step.
#include <time.h>

#include "absl/container/inlined_vector.h"
#include "client/src/device.h"
#include "common/steps/step_content.h"

namespace mets::client {

absl::Duration Device::JobTime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now) - waits_.waited();
}

void Device::WatchBegin(const char* name, const mets_access* accesses,
                        size_t count, StepWatch::Op* op) {
  absl::InlinedVector<steps::Touch, 16> touches;  // Mostly few.
  for (size_t i = 0; i < count; ++i) {
    const mets_access& access = accesses[i];
    if (access.kind == METS_NEW || !table_->Owns(access.address)) continue;
    const Buffer* buffer = table_->Find(access.address);
    // Whatever else is wrong with it, the op will find out.
    if (buffer == nullptr ||
        buffer->slab.load(std::memory_order_relaxed) != nullptr) {
      continue;
    }
    touches.push_back({BufferPool::IdOf(*buffer), access.kind != METS_READ});
  }
  if (touches.empty()) return;
  if (!step_watch_.on()) StartWatch();
  const uint64_t kind = name == nullptr ? 0 : steps::KindOf(name);
  const bool begins = step_watch_.Begin(JobTime(), kind, touches.data(),
                                        touches.size(), tight(), op);
  if (begins && !hinted_.load(std::memory_order_relaxed)) EndStep();
}

void Device::StartWatch() {
  absl::MutexLock lock(&mutex_);
  step_watch_.Start([this](StepWatch::AddLive add)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                          TellLive(/*slabs=*/false, add);
                        });
}

void Device::ReportSteps() {
  absl::MutexLock lock(&mutex_);
  if (muted_) return;
  for (v1::ClientMessage& message : step_watch_.Report(JobTime())) {
    uplink_.Send(std::move(message));
  }
}

}  // namespace mets::client
