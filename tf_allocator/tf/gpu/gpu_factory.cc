#include "tf_allocator/tf/gpu/gpu_factory.h"

#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/public/session_options.h"
#include "tf_allocator/tf/gpu/gpu_device.h"
#include "tf_allocator/tf/gpu/gpu_process_state.h"
#include "tf_allocator/tf/process_memory.h"
#include "xla/stream_executor/gpu/gpu_init.h"

namespace mets {
namespace {

using tensorflow::BaseGPUDevice;

// As TensorFlow's own factory makes them.
class PlainGpuDevice : public BaseGPUDevice {
 public:
  PlainGpuDevice(const tensorflow::SessionOptions& options,
                 const std::string& name, tensorflow::Bytes memory_limit,
                 const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id,
                 const std::string& description,
                 tensorflow::Allocator* gpu_allocator,
                 tensorflow::Allocator* cpu_allocator)
      : BaseGPUDevice(options, name, memory_limit, locality, id, description,
                      gpu_allocator, cpu_allocator, /*sync_every_op=*/false),
        gpu_compatible_(options.config.gpu_options().force_gpu_compatible()) {}

  tensorflow::Allocator* GetAllocator(
      tensorflow::AllocatorAttributes attributes) override {
    if (!attributes.on_host()) return gpu_allocator_;
    if (attributes.gpu_compatible() || gpu_compatible_) {
      return tensorflow::GPUProcessState::singleton()->GetGpuHostAllocator(
          /*options=*/{}, /*numa_node=*/0);
    }
    return cpu_allocator_;
  }

 private:
  const bool gpu_compatible_;
};

}  // namespace

bool GpuFactory::Uses(const tensorflow::SessionOptions& options) {
  const auto& count = options.config.device_count();
  const auto wanted = count.find("GPU");
  if (wanted != count.end() && wanted->second == 0) return false;
  return stream_executor::ValidateGPUMachineManager().ok() &&
         stream_executor::GPUMachineManager()->VisibleDeviceCount() > 0;
}

absl::Status GpuFactory::CreateDevices(
    const tensorflow::SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<tensorflow::Device>>* devices) {
  const size_t before = devices->size();
  const absl::Status status =
      BaseGPUDeviceFactory::CreateDevices(options, name_prefix, devices);
  if (!status.ok() || !MetsRequired()) return status;
  const std::string error = GpuProcessState::error();
  if (error.empty() || devices->size() == before) return status;
  devices->resize(before);
  return absl::FailedPreconditionError("METS: " + error +
                                       " (METS_REQUIRED is set)");
}

std::unique_ptr<BaseGPUDevice> GpuFactory::CreateGPUDevice(
    const tensorflow::SessionOptions& options, const std::string& name,
    tensorflow::Bytes memory_limit, const tensorflow::DeviceLocality& locality,
    tsl::TfDeviceId id, const std::string& description,
    tensorflow::Allocator* gpu_allocator,
    tensorflow::Allocator* cpu_allocator) {
  GpuAllocator* allocator = GpuProcessState::AllocatorOf(id);
  if (allocator == nullptr) {
    return std::make_unique<PlainGpuDevice>(options, name, memory_limit,
                                            locality, id, description,
                                            gpu_allocator, cpu_allocator);
  }
  return std::make_unique<GpuDevice>(options, name, locality, id, description,
                                     allocator, cpu_allocator, &table_);
}

}  // namespace mets
