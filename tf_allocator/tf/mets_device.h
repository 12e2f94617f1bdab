// A CPU device whose large tensors live in METS' memory.
#ifndef METS_TF_ALLOCATOR_TF_METS_DEVICE_H_
#define METS_TF_ALLOCATOR_TF_METS_DEVICE_H_

#include <string>

#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_allocator/core/device_memory.h"
#include "tf_allocator/core/kernel_table.h"
#include "tf_allocator/tf/op_announcer.h"

namespace mets {

// TensorFlow's CPU device, announcing each op's accesses to METS before the op
// runs. Thread-safe as any Device is. `memory` and `table` must outlive it (and
// outlive all tensors: they live until the process ends).
class MetsDevice : public tensorflow::ThreadPoolDevice {
 public:
  MetsDevice(const tensorflow::SessionOptions& options, const std::string& name,
             const tensorflow::DeviceLocality& locality,
             tensorflow::Allocator* allocator, DeviceMemory* memory,
             KernelTable* table);

  void Compute(tensorflow::OpKernel* kernel,
               tensorflow::OpKernelContext* context) override;
  void ComputeAsync(tensorflow::AsyncOpKernel* kernel,
                    tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override;

  void CopyTensorInSameDevice(const tensorflow::Tensor* input,
                              tensorflow::Tensor* output,
                              const tensorflow::DeviceContext* device_context,
                              tensorflow::StatusCallback done) override;

 private:
  DeviceMemory* const memory_;
  OpAnnouncer announcer_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_METS_DEVICE_H_
