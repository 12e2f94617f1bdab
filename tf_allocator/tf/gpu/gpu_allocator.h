// TensorFlow's view of a GPU's memory.
#ifndef METS_TF_ALLOCATOR_TF_GPU_GPU_ALLOCATOR_H_
#define METS_TF_ALLOCATOR_TF_GPU_GPU_ALLOCATOR_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tensorflow/core/framework/allocator.h"
#include "tf_allocator/core/device_memory.h"

namespace mets {

// Gives all tensors of a GPU memory of METS, in the order of the stream that
// runs its ops (DeviceMemory::SetStream). Thread-safe. Lives until the process
// ends, as `memory` must.
//
// When METS has no memory to give, AllocateRaw returns nullptr, TensorFlow
// raises ResourceExhausted, and the device adds METS' text to it. What is asked
// for without retries (a convolution's workspace) the kernel can do without.
class GpuAllocator : public tensorflow::Allocator {
 public:
  explicit GpuAllocator(DeviceMemory* memory) : memory_(memory) {}

  std::string Name() override { return "mets_gpu"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override;
  void* AllocateRaw(
      size_t alignment, size_t bytes,
      const tensorflow::AllocationAttributes& attributes) override;
  void DeallocateRaw(void* address) override;

  std::optional<tensorflow::AllocatorStats> GetStats() override;
  bool ClearStats() override;
  tensorflow::AllocatorMemoryType GetMemoryType() const override {
    return tensorflow::AllocatorMemoryType::kDevice;
  }

  DeviceMemory* memory() const { return memory_; }

 private:
  void* Allocate(size_t alignment, size_t bytes, bool needed);

  DeviceMemory* const memory_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_GPU_GPU_ALLOCATOR_H_
