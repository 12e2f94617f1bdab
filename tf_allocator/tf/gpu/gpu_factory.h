// Creates TensorFlow's GPU devices on METS' memory.
#ifndef METS_TF_ALLOCATOR_TF_GPU_GPU_FACTORY_H_
#define METS_TF_ALLOCATOR_TF_GPU_GPU_FACTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tf_allocator/core/kernel_table.h"

namespace mets {

// The factory that replaces TensorFlow's own for "GPU". A GPU that METS has not
// (see GpuProcessState) is an ordinary one; with METS_REQUIRED=1 creating
// devices fails instead.
class GpuFactory : public tensorflow::BaseGPUDeviceFactory {
 public:
  // Whether a program that sets these options uses GPUs: there are some, and it
  // has not asked for none.
  static bool Uses(const tensorflow::SessionOptions& options);

  absl::Status CreateDevices(
      const tensorflow::SessionOptions& options, const std::string& name_prefix,
      std::vector<std::unique_ptr<tensorflow::Device>>* devices) override;

 private:
  std::unique_ptr<tensorflow::BaseGPUDevice> CreateGPUDevice(
      const tensorflow::SessionOptions& options, const std::string& name,
      tensorflow::Bytes memory_limit,
      const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id,
      const std::string& description, tensorflow::Allocator* gpu_allocator,
      tensorflow::Allocator* cpu_allocator) override;

  KernelTable table_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_GPU_GPU_FACTORY_H_
