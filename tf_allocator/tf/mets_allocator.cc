#include "tf_allocator/tf/mets_allocator.h"

#include "tf_allocator/tf/allocator_stats.h"

namespace mets {

void* MetsAllocator::AllocateRaw(size_t alignment, size_t bytes) {
  // Nobody asks for more than kAllocatorAlignment, which mets_alloc gives.
  if (bytes < threshold_bytes_ || alignment > kAllocatorAlignment) {
    return small_->AllocateRaw(alignment, bytes);
  }
  void* address = nullptr;
  std::string error;
  switch (memory_->Allocate(bytes, 0, &address, &error)) {
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
  std::optional<tensorflow::AllocatorStats> stats = AllocatorStatsOf(*memory_);
  return stats.has_value() ? stats : small_->GetStats();
}

bool MetsAllocator::ClearStats() {
  if (memory_->forked()) return false;
  memory_->ResetPeak();
  return true;
}

}  // namespace mets
