#include "tf_allocator/core/kernel_needs.h"

namespace mets {

class KernelNeeds::Lock {
 public:
  explicit Lock(std::atomic<bool>* locked) : locked_(locked) {
    while (locked_->exchange(true, std::memory_order_acquire)) {
      while (locked_->load(std::memory_order_relaxed)) {
      }
    }
  }
  ~Lock() { locked_->store(false, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::atomic<bool>* const locked_;
};

uint64_t Need::TotalBytes() const {
  uint64_t total = rest_bytes;
  for (uint32_t i = 0; i < count; ++i) total += sizes[i];
  return total;
}

bool KernelNeeds::Find(uint64_t signature, Need* need) const {
  Lock lock(&locked_);
  for (const Entry& entry : entries_) {
    if (entry.used && entry.signature == signature) {
      *need = entry.need;
      return true;
    }
  }
  return false;
}

void KernelNeeds::Learn(uint64_t signature, const Need& need) {
  if (need.count > 0 && !allocates()) {
    allocates_.store(true, std::memory_order_relaxed);
  }
  Lock lock(&locked_);
  for (Entry& entry : entries_) {
    if (!entry.used || entry.signature != signature) continue;
    if (need.TotalBytes() >= entry.need.TotalBytes() ||
        ++entry.smaller_runs >= kRunsBeforeShrinking) {
      entry.smaller_runs = 0;
      entry.need = need;
    }
    return;
  }
  Entry& entry = entries_[next_];
  next_ = (next_ + 1) % kSignatures;
  entry.signature = signature;
  entry.used = true;
  entry.smaller_runs = 0;
  entry.need = need;
}

}  // namespace mets
