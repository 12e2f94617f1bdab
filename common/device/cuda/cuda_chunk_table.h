// CudaChunkTable: the chunks that a process has imported, and where they are.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_CHUNK_TABLE_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_CHUNK_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/map_driver.h"

namespace mets {

struct CudaChunk {
  CUmemGenericAllocationHandle memory = 0;
  Bytes size;
  // The range that it belongs to, from before it is mapped until after it is
  // unmapped; null: none.
  char* range = nullptr;
};

// Chunks in the order in which they lie in a range.
struct CudaChunks {
  std::vector<CudaChunk> chunks;
  Bytes size;
};

// Only a table: the caller maps and releases. Thread-safe.
class CudaChunkTable {
 public:
  ChunkHandle Add(CUmemGenericAllocationHandle memory, Bytes size);
  // Removes a chunk; without memory when there is none. REQUIRES: it belongs to
  // no range.
  CudaChunk Take(ChunkHandle handle);

  // The chunks, which belong to range `from` (null: none), and to `to` from now
  // on. INVALID_ARGUMENT, and nothing has changed, when a handle is unknown or
  // a chunk belongs elsewhere.
  absl::StatusOr<CudaChunks> Move(absl::Span<const ChunkHandle> handles,
                                  char* from, char* to);

  // All that are left, and none is left in the table.
  std::vector<CudaChunk> TakeAll();

 private:
  absl::Mutex mutex_;
  uint32_t next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<ChunkHandle, CudaChunk> chunks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_CHUNK_TABLE_H_
