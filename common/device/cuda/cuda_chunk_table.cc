#include "common/device/cuda/cuda_chunk_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets {

ChunkHandle CudaChunkTable::Add(CUmemGenericAllocationHandle memory,
                                Bytes size) {
  absl::MutexLock lock(&mutex_);
  const ChunkHandle handle{next_handle_++};
  chunks_[handle] = {memory, size, nullptr};
  return handle;
}

CudaChunk CudaChunkTable::Take(ChunkHandle handle) {
  absl::MutexLock lock(&mutex_);
  const auto it = chunks_.find(handle);
  if (it == chunks_.end()) return {};
  const CudaChunk chunk = it->second;
  METS_CHECK(chunk.range == nullptr)
      << "chunk " << static_cast<uint32_t>(handle) << " is still mapped";
  chunks_.erase(it);
  return chunk;
}

absl::StatusOr<CudaChunks> CudaChunkTable::Move(
    absl::Span<const ChunkHandle> handles, char* from, char* to) {
  CudaChunks found;
  found.chunks.reserve(handles.size());
  absl::MutexLock lock(&mutex_);
  for (ChunkHandle handle : handles) {
    const auto it = chunks_.find(handle);
    if (it == chunks_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no chunk ", static_cast<uint32_t>(handle)));
    }
    if (it->second.range != from) {
      return absl::InvalidArgumentError(
          from == nullptr ? "a chunk is mapped already"
                          : "a chunk is not mapped in this range");
    }
    found.chunks.push_back(it->second);
    found.size += it->second.size;
  }
  if (to != from) {
    for (ChunkHandle handle : handles) chunks_[handle].range = to;
  }
  return found;
}

std::vector<CudaChunk> CudaChunkTable::TakeAll() {
  absl::MutexLock lock(&mutex_);
  std::vector<CudaChunk> all;
  for (const auto& [handle, chunk] : chunks_) all.push_back(chunk);
  chunks_.clear();
  return all;
}

}  // namespace mets
