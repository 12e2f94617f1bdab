// RangeAllocator: which parts of a region of addresses are in use.
#ifndef METS_COMMON_DEVICE_RANGE_ALLOCATOR_H_
#define METS_COMMON_DEVICE_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"

namespace mets {

// Gives out ranges of [0, size), best fit. It knows offsets only: what lies
// there is the caller's. Thread-safe.
class RangeAllocator {
 public:
  struct Rules {
    Bytes granularity;  // Ranges start at, and are multiples of, this.
    // Ranges of at least this size start at a multiple of it; a multiple of
    // the granularity.
    Bytes large_alignment;
  };

  RangeAllocator(Bytes size, Rules rules);

  // The offset of a free range. INVALID_ARGUMENT when `size` is no positive
  // multiple of the granularity, RESOURCE_EXHAUSTED when no hole is large
  // enough.
  absl::StatusOr<uint64_t> Allocate(Bytes size);
  // REQUIRES: a range that Allocate returned.
  void Free(uint64_t offset, Bytes size);

 private:
  void AddHole(uint64_t offset, uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveHole(uint64_t offset, uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Bytes size_;
  const Rules rules_;
  absl::Mutex mutex_;
  // The same holes twice: by offset, and by (size, offset).
  std::map<uint64_t, uint64_t> holes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, uint64_t>> by_size_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_RANGE_ALLOCATOR_H_
