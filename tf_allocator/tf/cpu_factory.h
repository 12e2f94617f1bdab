// Creates TensorFlow's CPU devices on METS' memory.
#ifndef METS_TF_ALLOCATOR_TF_CPU_FACTORY_H_
#define METS_TF_ALLOCATOR_TF_CPU_FACTORY_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tf_allocator/core/device_memory.h"
#include "tf_allocator/core/kernel_table.h"

namespace mets {

// The factory that replaces TensorFlow's own for "CPU". It connects to metsd
// when the first device is created. When that fails, one line says so, and the
// devices are TensorFlow's own; with METS_REQUIRED=1 creating devices fails
// instead. In a forked child, and in a program that uses GPUs, the devices are
// TensorFlow's own: copies to and from GPUs read host memory unseen.
// Thread-safe.
class CpuFactory : public tensorflow::DeviceFactory {
 public:
  // Whether the program that sets these options uses GPUs.
  using UsesGpus = bool (*)(const tensorflow::SessionOptions& options);

  CpuFactory(std::string folder, UsesGpus uses_gpus)
      : folder_(std::move(folder)), uses_gpus_(uses_gpus) {}

  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override;
  absl::Status CreateDevices(
      const tensorflow::SessionOptions& options, const std::string& name_prefix,
      std::vector<std::unique_ptr<tensorflow::Device>>* devices) override;

 private:
  std::unique_ptr<tensorflow::Device> CreateDevice(
      const tensorflow::SessionOptions& options, const std::string& name,
      int numa_node, DeviceMemory* memory);
  tensorflow::Allocator* AllocatorFor(tensorflow::Allocator* small,
                                      DeviceMemory* memory);

  const std::string folder_;
  const UsesGpus uses_gpus_;
  std::mutex mutex_;
  KernelTable table_;
  std::vector<std::pair<tensorflow::Allocator*, tensorflow::Allocator*>>
      allocators_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_CPU_FACTORY_H_
