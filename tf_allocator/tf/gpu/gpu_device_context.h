// Announces to METS the copies that no op does: feeds, fetches, .numpy().
#ifndef METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_CONTEXT_H_
#define METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_CONTEXT_H_

#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tf_allocator/core/device_memory.h"

namespace mets {

// TensorFlow's context of a GPU, with its streams. A copy that METS has no
// memory for ends with ResourceExhausted and METS' text. Thread-safe. `memory`
// must outlive it.
class GpuDeviceContext : public tensorflow::GPUDeviceContext {
 public:
  GpuDeviceContext(const tensorflow::GPUDeviceContext& stock,
                   DeviceMemory* memory);

  void CopyCPUTensorToDevice(const tensorflow::Tensor* from,
                             tensorflow::Device* device, tensorflow::Tensor* to,
                             tensorflow::StatusCallback done,
                             bool sync_dst_compute) const override;
  void CopyDeviceTensorToCPU(const tensorflow::Tensor* from,
                             absl::string_view edge_name,
                             tensorflow::Device* device, tensorflow::Tensor* to,
                             tensorflow::StatusCallback done) override;
  void CopyTensorInSameDevice(const tensorflow::Tensor* from,
                              tensorflow::Device* device,
                              tensorflow::Tensor* to,
                              tensorflow::StatusCallback done) const override;

 private:
  // Begins an op on the tensors, of which either may be null. True: the copy
  // may be made, with `*done`, which ends the op. False: `*done` has been
  // called.
  bool Begin(const tensorflow::Tensor* read, const tensorflow::Tensor* written,
             tensorflow::StatusCallback* done) const;

  DeviceMemory* const memory_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_GPU_GPU_DEVICE_CONTEXT_H_
