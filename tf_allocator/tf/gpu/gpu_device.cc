#include "tf_allocator/tf/gpu/gpu_device.h"

#include <utility>

#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/public/session_options.h"
#include "tf_allocator/tf/gpu/gpu_device_context.h"

namespace mets {

using tensorflow::AsyncOpKernel;
using tensorflow::BaseGPUDevice;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;

GpuDevice::GpuDevice(const tensorflow::SessionOptions& options,
                     const std::string& name,
                     const tensorflow::DeviceLocality& locality,
                     tsl::TfDeviceId id, const std::string& description,
                     GpuAllocator* allocator,
                     tensorflow::Allocator* cpu_allocator, KernelTable* table)
    // Of what it takes for the device's memory, TensorFlow's graph optimizer
    // (Grappler) thinks that a graph must not need more, and has the graph copy
    // tensors to the host itself, where ops wait for them. 0: unknown.
    : BaseGPUDevice(options, name,
                    tensorflow::Bytes(static_cast<int64_t>(
                        allocator->memory()->own_limit_bytes())),
                    locality, id, description, allocator, cpu_allocator,
                    /*sync_every_op=*/false),
      memory_(allocator->memory()),
      gpu_compatible_(options.config.gpu_options().force_gpu_compatible()),
      // Python gets copies, which the device context makes.
      announcer_(memory_, table, /*looks=*/false) {}

tensorflow::Allocator* GpuDevice::GetAllocator(
    tensorflow::AllocatorAttributes attributes) {
  if (!attributes.on_host()) return gpu_allocator_;
  if (attributes.gpu_compatible() || gpu_compatible_) {
    return tensorflow::GPUProcessState::singleton()->GetGpuHostAllocator(
        /*options=*/{}, /*numa_node=*/0);
  }
  return cpu_allocator_;
}

const GpuDevice::AcceleratorDeviceInfo*
GpuDevice::tensorflow_accelerator_device_info() const {
  const AcceleratorDeviceInfo* stock =
      BaseGPUDevice::tensorflow_accelerator_device_info();
  if (stock == nullptr || stock->default_context == nullptr) return stock;
  std::call_once(info_once_, [&] {
    const auto* context = static_cast<const tensorflow::GPUDeviceContext*>(
        stock->default_context);
    memory_->SetStream(context->stream()->platform_specific_handle().stream);
    info_ = *stock;
    info_.default_context = new GpuDeviceContext(*context, memory_);
  });
  return &info_;
}

void GpuDevice::Compute(OpKernel* kernel, OpKernelContext* context) {
  announcer_.Compute(kernel, context,
                     [&] { BaseGPUDevice::Compute(kernel, context); });
}

void GpuDevice::ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                             AsyncOpKernel::DoneCallback done) {
  announcer_.ComputeAsync(
      kernel, context, std::move(done), [&](AsyncOpKernel::DoneCallback end) {
        BaseGPUDevice::ComputeAsync(kernel, context, std::move(end));
      });
}

void GpuDevice::CopyTensorInSameDevice(const tensorflow::Tensor* from,
                                       tensorflow::Tensor* to,
                                       const tensorflow::DeviceContext* context,
                                       tensorflow::StatusCallback done) {
  const AcceleratorDeviceInfo* info = tensorflow_accelerator_device_info();
  const tensorflow::DeviceContext* announcing =
      info == nullptr || info->default_context == nullptr
          ? context
          : info->default_context;
  announcing->CopyTensorInSameDevice(from, this, to, std::move(done));
}

}  // namespace mets
