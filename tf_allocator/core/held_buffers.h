// Buffers that are held until an op shows that it uses them.
#ifndef METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
#define METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_set>

namespace mets {

// The set of addresses of buffers that are held now and become movable when an
// op names them. A held buffer that is not in it stays held. Thread-safe; most
// of the time the set is empty, and then asking costs one load.
class HeldBuffers {
 public:
  void Insert(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    addresses_.insert(address);
    size_.store(addresses_.size(), std::memory_order_relaxed);
  }

  // True when it was there.
  bool Erase(const void* address) {
    if (empty()) return false;
    std::lock_guard<std::mutex> lock(mutex_);
    const bool erased = addresses_.erase(address) > 0;
    size_.store(addresses_.size(), std::memory_order_relaxed);
    return erased;
  }

  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  std::atomic<size_t> size_{0};
  std::mutex mutex_;
  std::unordered_set<const void*> addresses_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
