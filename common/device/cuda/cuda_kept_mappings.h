// CudaKeptMappings: mappings that nobody uses and that are still there.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_KEPT_MAPPINGS_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_KEPT_MAPPINGS_H_

#include <list>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"

namespace mets {

// A range that was unmapped, but has its mapping.
struct CudaKeptMapping {
  char* range = nullptr;
  Bytes size;
  std::vector<ChunkHandle> chunks;
  // What may touch the range until they have passed.
  std::vector<Fence> after;
  // The range is nobody's.
  bool released = false;
};

// Ranges by address, by chunks and by age. Chunks may be in several of them,
// and in a range that is used. Only a table: the caller maps and unmaps.
// Thread-safe.
class CudaKeptMappings {
 public:
  // Released ranges that are worth keeping. A step of a training that swaps
  // uses some hundred.
  static constexpr size_t kMostReleased = 1024;

  void Add(CudaKeptMapping mapping);
  // The one at `range`, which is kept no longer.
  std::optional<CudaKeptMapping> Take(char* range);
  // The range is nobody's any more; false when it has no mapping here.
  bool Release(char* range);
  // A released range with exactly these chunks, in their order, which is the
  // caller's from now on and still has them; null when there is none.
  char* Reserve(absl::Span<const ChunkHandle> chunks);

  // Those with the chunk; the oldest released ones, but for `most`; all. They
  // are kept no longer.
  std::vector<CudaKeptMapping> TakeWith(ChunkHandle chunk);
  std::vector<CudaKeptMapping> TakeReleased(size_t most);
  std::vector<CudaKeptMapping> TakeAll();

 private:
  using Mappings = std::list<CudaKeptMapping>;  // The oldest first.

  CudaKeptMapping Remove(Mappings::iterator mapping)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Mappings mappings_ ABSL_GUARDED_BY(mutex_);
  size_t released_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<char*, Mappings::iterator> by_range_
      ABSL_GUARDED_BY(mutex_);
  // Of the ranges that have the chunk.
  absl::flat_hash_map<ChunkHandle, std::vector<char*>> by_chunk_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_KEPT_MAPPINGS_H_
