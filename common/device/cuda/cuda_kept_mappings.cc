#include "common/device/cuda/cuda_kept_mappings.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mets {

void CudaKeptMappings::Add(CudaKeptMapping mapping) {
  absl::MutexLock lock(&mutex_);
  released_ += mapping.released;
  for (ChunkHandle chunk : mapping.chunks) {
    by_chunk_[chunk].push_back(mapping.range);
  }
  mappings_.push_back(std::move(mapping));
  by_range_[mappings_.back().range] = std::prev(mappings_.end());
}

CudaKeptMapping CudaKeptMappings::Remove(Mappings::iterator mapping) {
  CudaKeptMapping removed = std::move(*mapping);
  mappings_.erase(mapping);
  released_ -= removed.released;
  by_range_.erase(removed.range);
  for (ChunkHandle chunk : removed.chunks) {
    const auto it = by_chunk_.find(chunk);
    std::vector<char*>& ranges = it->second;
    ranges.erase(std::find(ranges.begin(), ranges.end(), removed.range));
    if (ranges.empty()) by_chunk_.erase(it);
  }
  return removed;
}

std::optional<CudaKeptMapping> CudaKeptMappings::Take(char* range) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_range_.find(range);
  if (it == by_range_.end()) return std::nullopt;
  return Remove(it->second);
}

bool CudaKeptMappings::Release(char* range) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_range_.find(range);
  if (it == by_range_.end()) return false;
  it->second->released = true;
  ++released_;
  return true;
}

char* CudaKeptMappings::Reserve(absl::Span<const ChunkHandle> chunks) {
  absl::MutexLock lock(&mutex_);
  if (chunks.empty()) return nullptr;
  const auto with_first = by_chunk_.find(chunks.front());
  if (with_first == by_chunk_.end()) return nullptr;
  for (char* range : with_first->second) {
    CudaKeptMapping& mapping = *by_range_.at(range);
    if (!mapping.released || absl::MakeSpan(mapping.chunks) != chunks) continue;
    mapping.released = false;
    --released_;
    return range;
  }
  return nullptr;
}

std::vector<CudaKeptMapping> CudaKeptMappings::TakeWith(ChunkHandle chunk) {
  std::vector<CudaKeptMapping> taken;
  absl::MutexLock lock(&mutex_);
  for (auto it = by_chunk_.find(chunk); it != by_chunk_.end();
       it = by_chunk_.find(chunk)) {
    taken.push_back(Remove(by_range_.at(it->second.front())));
  }
  return taken;
}

std::vector<CudaKeptMapping> CudaKeptMappings::TakeReleased(size_t most) {
  std::vector<CudaKeptMapping> taken;
  absl::MutexLock lock(&mutex_);
  for (auto it = mappings_.begin(); released_ > most;) {
    const auto mapping = it++;
    if (mapping->released) taken.push_back(Remove(mapping));
  }
  return taken;
}

std::vector<CudaKeptMapping> CudaKeptMappings::TakeAll() {
  std::vector<CudaKeptMapping> taken;
  absl::MutexLock lock(&mutex_);
  while (!mappings_.empty()) taken.push_back(Remove(mappings_.begin()));
  return taken;
}

}  // namespace mets
