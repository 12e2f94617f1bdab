#include "tf_allocator/tf/mets_allocator.h"

namespace mets {

void* MetsAllocator::AllocateRaw(size_t alignment, size_t bytes) {
  // Nobody asks for more than kAllocatorAlignment, which mets_alloc gives.
  if (bytes < threshold_bytes_ || alignment > kAllocatorAlignment) {
    return small_->AllocateRaw(alignment, bytes);
  }
  void* address = nullptr;
  std::string error;
  switch (memory_->Allocate(bytes, &address, &error)) {
    case DeviceMemory::Result::kOk:
      return address;
    case DeviceMemory::Result::kNotHere:
      return small_->AllocateRaw(alignment, bytes);
    case DeviceMemory::Result::kFailed:
      break;
  }
  return nullptr;
}

void MetsAllocator::DeallocateRaw(void* address) {
  if (memory_->Owns(address)) {
    memory_->Free(address);
  } else {
    small_->DeallocateRaw(address);
  }
}

void MetsAllocator::DeallocateRaw(void* address, size_t alignment,
                                  size_t bytes) {
  if (memory_->Owns(address)) {
    memory_->Free(address);
  } else {
    small_->DeallocateRaw(address, alignment, bytes);
  }
}

std::optional<tensorflow::AllocatorStats> MetsAllocator::GetStats() {
  mets_stats_t mets = {};
  mets.size = sizeof(mets);
  if (!memory_->Stats(&mets)) return small_->GetStats();
  tensorflow::AllocatorStats stats;
  stats.num_allocs = static_cast<int64_t>(mets.allocations_total);
  stats.bytes_in_use = static_cast<int64_t>(mets.live_bytes);
  stats.peak_bytes_in_use = static_cast<int64_t>(mets.peak_live_bytes);
  stats.largest_alloc_size =
      static_cast<int64_t>(memory_->largest_allocation_bytes());
  stats.bytes_limit = static_cast<int64_t>(memory_->limit_bytes());
  stats.bytes_reserved =
      static_cast<int64_t>(mets.resident_bytes + mets.cached_bytes);
  return stats;
}

bool MetsAllocator::ClearStats() {
  if (memory_->forked()) return false;
  memory_->ResetPeak();
  return true;
}

}  // namespace mets
