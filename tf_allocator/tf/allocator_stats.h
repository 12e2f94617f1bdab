// A device's numbers as TensorFlow shows them.
#ifndef METS_TF_ALLOCATOR_TF_ALLOCATOR_STATS_H_
#define METS_TF_ALLOCATOR_TF_ALLOCATOR_STATS_H_

#include <optional>

#include "tensorflow/core/framework/allocator.h"
#include "tf_allocator/core/device_memory.h"

namespace mets {

// Nothing after a fork or a failure of libmets.
inline std::optional<tensorflow::AllocatorStats> AllocatorStatsOf(
    const DeviceMemory& memory) {
  mets_stats_t mets = METS_STATS_INIT;
  if (!memory.Stats(&mets)) return std::nullopt;
  tensorflow::AllocatorStats stats;
  stats.num_allocs = static_cast<int64_t>(mets.allocations_total);
  stats.bytes_in_use = static_cast<int64_t>(mets.live_bytes);
  stats.peak_bytes_in_use = static_cast<int64_t>(mets.peak_live_bytes);
  stats.largest_alloc_size =
      static_cast<int64_t>(memory.largest_allocation_bytes());
  stats.bytes_limit = static_cast<int64_t>(memory.limit_bytes());
  stats.bytes_reserved =
      static_cast<int64_t>(mets.resident_bytes + mets.cached_bytes);
  return stats;
}

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_ALLOCATOR_STATS_H_
