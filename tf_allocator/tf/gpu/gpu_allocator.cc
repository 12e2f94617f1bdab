#include "tf_allocator/tf/gpu/gpu_allocator.h"

#include <algorithm>

#include "tf_allocator/tf/allocator_stats.h"

namespace mets {
namespace {

// As TensorFlow's own GPU allocator aligns.
constexpr size_t kAlign = 256;

}  // namespace

void* GpuAllocator::AllocateRaw(size_t alignment, size_t bytes) {
  return Allocate(alignment, bytes, /*needed=*/true);
}

void* GpuAllocator::AllocateRaw(
    size_t alignment, size_t bytes,
    const tensorflow::AllocationAttributes& attributes) {
  return Allocate(alignment, bytes, attributes.retry_on_failure);
}

void* GpuAllocator::Allocate(size_t alignment, size_t bytes, bool needed) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  std::string error;
  const DeviceMemory::Result result = memory_->Allocate(
      bytes, std::max(alignment, kAlign), &address, &error, needed);
  return result == DeviceMemory::Result::kOk ? address : nullptr;
}

void GpuAllocator::DeallocateRaw(void* address) {
  if (address != nullptr) memory_->Free(address);
}

std::optional<tensorflow::AllocatorStats> GpuAllocator::GetStats() {
  return AllocatorStatsOf(*memory_);
}

bool GpuAllocator::ClearStats() {
  if (memory_->forked()) return false;
  memory_->ResetPeak();
  return true;
}

}  // namespace mets
