#include "tf_allocator/tf/gpu/gpu_process_state.h"

#include <dlfcn.h>

#include "client/loader/cuda_device_id.h"
#include "tensorflow/core/common_runtime/gpu/gpu_id_manager.h"
#include "tf_allocator/tf/process_memory.h"

namespace mets {
namespace {

GpuProcessState* g_state = nullptr;

// What the program allows itself of a GPU; 0: all.
uint64_t OwnLimit(const tensorflow::GPUOptions& options, size_t total_bytes) {
  bool limited = options.per_process_gpu_memory_fraction() > 0;
  for (const auto& gpu : options.experimental().virtual_devices()) {
    limited |= gpu.memory_limit_mb_size() > 0;
  }
  return limited ? total_bytes : 0;
}

}  // namespace

bool GpuProcessState::Install(const std::string& folder) {
  if (dlopen(kCudaDriver, RTLD_NOW | RTLD_LOCAL) == nullptr) return false;
  auto* state = new GpuProcessState(folder);
  if (singleton(state) != state) return false;
  g_state = state;
  return true;
}

GpuAllocator* GpuProcessState::AllocatorOf(tsl::TfDeviceId id) {
  std::lock_guard<std::mutex> lock(g_state->mutex_);
  const auto it = g_state->allocators_.find(id.value());
  return it == g_state->allocators_.end() ? nullptr : it->second;
}

std::string GpuProcessState::error() {
  std::lock_guard<std::mutex> lock(g_state->mutex_);
  return g_state->error_;
}

GpuAllocator* GpuProcessState::Make(tsl::TfDeviceId id, uint64_t limit_bytes) {
  const std::string name = "GPU:" + std::to_string(id.value());
  tsl::PlatformDeviceId platform_id;
  std::string uuid, error;
  DeviceMemory* memory = nullptr;
  if (!tensorflow::GpuIdManager::TfToPlatformDeviceId(id, &platform_id).ok()) {
    error = "TensorFlow has no " + name;
  } else if (CudaDeviceId(kCudaDriver, platform_id.value(), &uuid, &error)) {
    memory = OpenMemory(folder_, uuid.c_str(), "cuda", &error);
  }
  if (memory != nullptr) {
    memory->SetOwnLimit(limit_bytes);
    return new GpuAllocator(memory);
  }
  error_ = error;
  if (!MetsRequired()) SayWithoutMets(name, error);
  return nullptr;
}

void GpuProcessState::HoldIfSeveral() {
  if (allocators_.size() < 2) return;
  for (const auto& [id, allocator] : allocators_) {
    if (allocator != nullptr) allocator->memory()->HoldAll();
  }
}

tensorflow::Allocator* GpuProcessState::GetGPUAllocator(
    const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
    size_t total_bytes, const std::vector<tsl::TfDeviceId>& peers) {
  // It must exist, since pinned host memory is made by its means. It takes no
  // memory before it is used.
  tensorflow::Allocator* stock =
      GPUProcessState::GetGPUAllocator(options, id, total_bytes, peers);
  if (stock == nullptr || InForkedChild()) return stock;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = allocators_.find(id.value());
  if (it == allocators_.end()) {
    GpuAllocator* made = Make(id, OwnLimit(options, total_bytes));
    it = allocators_.emplace(id.value(), made).first;
    HoldIfSeveral();
  }
  return it->second != nullptr ? it->second : stock;
}

}  // namespace mets
