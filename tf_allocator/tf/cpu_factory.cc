#include "tf_allocator/tf/cpu_factory.h"

#include <utility>

#include "tensorflow/core/common_runtime/process_state.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/platform/numa.h"
#include "tensorflow/core/public/session_options.h"
#include "tf_allocator/tf/mets_allocator.h"
#include "tf_allocator/tf/mets_device.h"
#include "tf_allocator/tf/process_memory.h"

namespace mets {
namespace {

// The daemon's first host device.
constexpr char kHostDevice[] = "host0";

struct Attempt {
  DeviceMemory* memory = nullptr;
  std::string error;
};

// One attempt per process.
const Attempt& HostMemory(const std::string& folder) {
  static const Attempt* const attempt = [&folder] {
    auto* made = new Attempt;
    made->memory = OpenMemory(folder, kHostDevice, "host", &made->error);
    return made;
  }();
  return *attempt;
}

}  // namespace

absl::Status CpuFactory::ListPhysicalDevices(
    std::vector<std::string>* devices) {
  devices->push_back("/physical_device:CPU:0");
  return absl::OkStatus();
}

absl::Status CpuFactory::CreateDevices(
    const tensorflow::SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<tensorflow::Device>>* devices) {
  DeviceMemory* memory = nullptr;
  if (!InForkedChild() && !uses_gpus_(options)) {
    const Attempt& attempt = HostMemory(folder_);
    memory = attempt.memory;
    if (memory == nullptr) {
      if (MetsRequired()) {
        return absl::FailedPreconditionError("METS: " + attempt.error +
                                             " (METS_REQUIRED is set)");
      }
      SayWithoutMets("TensorFlow", attempt.error);
    }
  }
  int count = 1;
  const auto wanted = options.config.device_count().find("CPU");
  if (wanted != options.config.device_count().end()) count = wanted->second;
  const bool numa = options.config.experimental().use_numa_affinity();
  for (int i = 0; i < count; ++i) {
    const int node = numa ? i % tensorflow::port::NUMANumNodes()
                          : tensorflow::port::kNUMANoAffinity;
    devices->push_back(
        CreateDevice(options, name_prefix + "/device:CPU:" + std::to_string(i),
                     node, memory));
  }
  return absl::OkStatus();
}

std::unique_ptr<tensorflow::Device> CpuFactory::CreateDevice(
    const tensorflow::SessionOptions& options, const std::string& name,
    int numa_node, DeviceMemory* memory) {
  tensorflow::DeviceLocality locality;
  if (numa_node != tensorflow::port::kNUMANoAffinity) {
    locality.set_numa_node(numa_node);
  }
  tensorflow::Allocator* stock =
      tensorflow::ProcessState::singleton()->GetCPUAllocator(numa_node);
  if (memory == nullptr) {
    return std::make_unique<tensorflow::ThreadPoolDevice>(
        options, name, tensorflow::Bytes(256 << 20), locality, stock);
  }
  return std::make_unique<MetsDevice>(
      options, name, locality, AllocatorFor(stock, memory), memory, &table_);
}

tensorflow::Allocator* CpuFactory::AllocatorFor(tensorflow::Allocator* small,
                                                DeviceMemory* memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& known : allocators_) {
    if (known.first == small) return known.second;
  }
  // Lives until the process ends: tensors may outlive every device.
  allocators_.emplace_back(small, new MetsAllocator(memory, small));
  return allocators_.back().second;
}

}  // namespace mets
