// What a kernel allocated when it ran, by the sizes of its inputs, so that its
// next run can ask for that memory before it pins anything.
#ifndef METS_TF_ALLOCATOR_CORE_KERNEL_NEEDS_H_
#define METS_TF_ALLOCATOR_CORE_KERNEL_NEEDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mets {

// Large allocations that were live at once. The first kSizes one by one, what
// is beyond as a sum.
struct Need {
  static constexpr size_t kSizes = 8;
  uint32_t count = 0;
  uint64_t sizes[kSizes] = {};
  uint64_t rest_bytes = 0;

  void Add(uint64_t bytes) {
    if (count < kSizes) {
      sizes[count++] = bytes;
    } else {
      rest_bytes += bytes;
    }
  }
  uint64_t TotalBytes() const;
};

// The needs of one kernel for the last few signatures of its inputs.
// Thread-safe; a spin lock, taken only by ops that have large tensors.
class KernelNeeds {
 public:
  // True once any run has allocated. Wait-free.
  bool allocates() const { return allocates_.load(std::memory_order_relaxed); }

  // What a run with inputs of this signature allocated. False: never seen.
  [[nodiscard]] bool Find(uint64_t signature, Need* need) const;

  // Records a run. More than before is taken over at once; less only after
  // several runs in a row, because whether an output reuses an input's buffer
  // changes from run to run.
  void Learn(uint64_t signature, const Need& need);

 private:
  static constexpr size_t kSignatures = 4;
  static constexpr uint32_t kRunsBeforeShrinking = 8;
  struct Entry {
    uint64_t signature = 0;
    bool used = false;
    uint32_t smaller_runs = 0;
    Need need;
  };
  class Lock;

  std::atomic<bool> allocates_{false};
  mutable std::atomic<bool> locked_{false};
  size_t next_ = 0;
  Entry entries_[kSignatures];
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_KERNEL_NEEDS_H_
