// TensorFlow's view of a METS device's memory.
#ifndef METS_TF_ALLOCATOR_TF_METS_ALLOCATOR_H_
#define METS_TF_ALLOCATOR_TF_METS_ALLOCATOR_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tensorflow/core/framework/allocator.h"
#include "tf_allocator/core/device_memory.h"

namespace mets {

// Gives large tensors memory of METS and leaves small ones to TensorFlow's own
// allocator. Thread-safe. Lives until the process ends, as `memory` and
// `small` must.
//
// When METS has no memory to give, AllocateRaw returns nullptr, TensorFlow
// raises ResourceExhausted, and the device adds METS' text to it.
class MetsAllocator : public tensorflow::Allocator {
 public:
  MetsAllocator(DeviceMemory* memory, tensorflow::Allocator* small)
      : memory_(memory),
        small_(small),
        threshold_bytes_(memory->threshold_bytes()) {}

  std::string Name() override { return "mets"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override;
  void DeallocateRaw(void* address) override;
  void DeallocateRaw(void* address, size_t alignment, size_t bytes) override;

  // Of the large tensors.
  std::optional<tensorflow::AllocatorStats> GetStats() override;
  bool ClearStats() override;
  tensorflow::AllocatorMemoryType GetMemoryType() const override {
    return tensorflow::AllocatorMemoryType::kHostPageable;
  }

 private:
  DeviceMemory* const memory_;
  tensorflow::Allocator* const small_;
  const size_t threshold_bytes_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_METS_ALLOCATOR_H_
