// A GPU whose tensors live in METS' memory.
#ifndef METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_H_
#define METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_H_

#include <mutex>
#include <string>

#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_allocator/core/kernel_table.h"
#include "tf_allocator/tf/gpu/gpu_allocator.h"
#include "tf_allocator/tf/op_announcer.h"

namespace mets {

// TensorFlow's GPU device, announcing each op's accesses to METS before the op
// is launched, and its work on the compute stream afterwards. Thread-safe as
// any Device is. `allocator` and `table` must outlive it.
class GpuDevice : public tensorflow::BaseGPUDevice {
 public:
  GpuDevice(const tensorflow::SessionOptions& options, const std::string& name,
            const tensorflow::DeviceLocality& locality, tsl::TfDeviceId id,
            const std::string& description, GpuAllocator* allocator,
            tensorflow::Allocator* cpu_allocator, KernelTable* table);

  tensorflow::Allocator* GetAllocator(
      tensorflow::AllocatorAttributes attributes) override;
  // Its context is a GpuDeviceContext.
  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info()
      const override;

  void Compute(tensorflow::OpKernel* kernel,
               tensorflow::OpKernelContext* context) override;
  void ComputeAsync(tensorflow::AsyncOpKernel* kernel,
                    tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override;
  void CopyTensorInSameDevice(const tensorflow::Tensor* from,
                              tensorflow::Tensor* to,
                              const tensorflow::DeviceContext* context,
                              tensorflow::StatusCallback done) override;

 private:
  DeviceMemory* const memory_;
  const bool gpu_compatible_;  // All host memory is to be.
  OpAnnouncer announcer_;
  mutable std::once_flag info_once_;
  mutable AcceleratorDeviceInfo info_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_H_
