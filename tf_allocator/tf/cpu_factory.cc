#include "tf_allocator/tf/cpu_factory.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tensorflow/core/common_runtime/process_state.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/platform/numa.h"
#include "tensorflow/core/public/session_options.h"
#include "tf_allocator/tf/mets_allocator.h"
#include "tf_allocator/tf/mets_device.h"

namespace mets {
namespace {

std::atomic<DeviceMemory*> g_memory{nullptr};
std::atomic<bool> g_forked{false};

bool Set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

void InForkedChild() {
  g_forked.store(true);
  DeviceMemory* memory = g_memory.load();
  if (memory != nullptr) memory->ForkedChild();
}

struct Connection {
  DeviceMemory* memory = nullptr;
  std::string error;
};

Connection Connect(const std::string& folder) {
  Connection result;
  MetsApi api;
  if (LoadMetsApi(LibmetsPath(folder), &api, &result.error)) {
    // Lives until the process ends: tensors may outlive every device.
    result.memory = DeviceMemory::Open(api, &result.error).release();
  }
  if (result.memory != nullptr) {
    g_memory.store(result.memory);
  } else if (!Set("METS_REQUIRED")) {
    std::fprintf(stderr, "METS: %s; TensorFlow goes on without METS\n",
                 result.error.c_str());
  }
  return result;
}

// One attempt per process.
const Connection& ProcessConnection(const std::string& folder) {
  static const Connection* const connection = new Connection(Connect(folder));
  return *connection;
}

}  // namespace

DeviceMemory* ProcessMemory() { return g_memory.load(); }

absl::Status CpuFactory::ListPhysicalDevices(
    std::vector<std::string>* devices) {
  static const int registered = pthread_atfork(nullptr, nullptr, InForkedChild);
  (void)registered;
  devices->push_back("/physical_device:CPU:0");
  return absl::OkStatus();
}

absl::Status CpuFactory::CreateDevices(
    const tensorflow::SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<tensorflow::Device>>* devices) {
  DeviceMemory* memory = nullptr;
  if (!g_forked.load()) {
    const Connection& connection = ProcessConnection(folder_);
    memory = connection.memory;
    if (memory == nullptr && Set("METS_REQUIRED")) {
      return absl::FailedPreconditionError("METS: " + connection.error +
                                           " (METS_REQUIRED is set)");
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
