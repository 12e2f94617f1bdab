// Buffers that are held until an op shows that it uses them.
#ifndef METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
#define METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace mets {

// The set of addresses of buffers that are held now and become movable when an
// op names them. A held buffer that is not in it stays held. Thread-safe. It is
// asked about every tensor of every op, and some stay in it (constants that no
// op uses): the set is in many parts, most of which are empty, and then asking
// costs one load.
class HeldBuffers {
 public:
  void Insert(const void* address) {
    Part& part = PartOf(address);
    std::lock_guard<std::mutex> lock(part.mutex);
    part.addresses.insert(address);
    part.size.store(part.addresses.size(), std::memory_order_relaxed);
  }

  // True when it was there.
  bool Erase(const void* address) {
    Part& part = PartOf(address);
    if (part.size.load(std::memory_order_relaxed) == 0) return false;
    std::lock_guard<std::mutex> lock(part.mutex);
    const bool erased = part.addresses.erase(address) > 0;
    part.size.store(part.addresses.size(), std::memory_order_relaxed);
    return erased;
  }

 private:
  static constexpr size_t kParts = 256;
  struct Part {
    std::atomic<size_t> size{0};
    std::mutex mutex;
    std::unordered_set<const void*> addresses;
  };

  Part& PartOf(const void* address) {
    const uint64_t number = reinterpret_cast<uintptr_t>(address) >> 6;
    return parts_[(number * 0x9E3779B97F4A7C15u) >> 56];
  }

  Part parts_[kParts];
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_HELD_BUFFERS_H_
