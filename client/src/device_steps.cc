// Device: the training step.
#include <time.h>

#include <vector>

#include "client/src/device.h"

namespace mets::client {
namespace {

// An op's buffers, mostly few.
class TouchList {
 public:
  void Add(const steps::Touch& touch) {
    if (count_ < kInline) {
      inline_[count_] = touch;
    } else {
      if (count_ == kInline) more_.assign(inline_, inline_ + kInline);
      more_.push_back(touch);
    }
    ++count_;
  }
  const steps::Touch* data() const {
    return count_ <= kInline ? inline_ : more_.data();
  }
  size_t size() const { return count_; }

 private:
  static constexpr size_t kInline = 16;

  size_t count_ = 0;
  steps::Touch inline_[kInline];
  std::vector<steps::Touch> more_;
};

}  // namespace

absl::Duration Device::JobTime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now) - gate_.waited();
}

void Device::WatchBegin(const mets_access* accesses, size_t count,
                        StepWatch::Op* op) {
  TouchList touches;
  for (size_t i = 0; i < count; ++i) {
    const mets_access& access = accesses[i];
    if (access.kind == METS_NEW || !table_->Owns(access.address)) continue;
    const Buffer* buffer = table_->Find(access.address);
    // Whatever else is wrong with it, the op will find out.
    if (buffer == nullptr ||
        buffer->slab.load(std::memory_order_relaxed) != nullptr) {
      continue;
    }
    touches.Add({BufferPool::IdOf(*buffer), access.kind != METS_READ});
  }
  if (touches.size() == 0) return;
  const bool begins =
      step_watch_.Begin(JobTime(), touches.data(), touches.size(), op);
  if (begins && !hinted_.load(std::memory_order_relaxed)) EndStep();
}

void Device::ReportSteps() {
  absl::MutexLock lock(&mutex_);
  if (muted_) return;
  for (v1::ClientMessage& message : step_watch_.Report(JobTime())) {
    uplink_.Send(std::move(message));
  }
}

}  // namespace mets::client
