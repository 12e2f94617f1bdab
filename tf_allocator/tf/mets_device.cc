#include "tf_allocator/tf/mets_device.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"

namespace mets {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::ThreadPoolDevice;

MetsDevice::MetsDevice(const tensorflow::SessionOptions& options,
                       const std::string& name,
                       const tensorflow::DeviceLocality& locality,
                       tensorflow::Allocator* allocator, DeviceMemory* memory,
                       KernelTable* table)
    : ThreadPoolDevice(options, name, tensorflow::Bytes(256 << 20), locality,
                       allocator),
      memory_(memory),
      announcer_(memory, table, /*looks=*/true) {}

void MetsDevice::Compute(OpKernel* kernel, OpKernelContext* context) {
  announcer_.Compute(kernel, context,
                     [&] { ThreadPoolDevice::Compute(kernel, context); });
}

void MetsDevice::ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                              AsyncOpKernel::DoneCallback done) {
  announcer_.ComputeAsync(
      kernel, context, std::move(done), [&](AsyncOpKernel::DoneCallback end) {
        ThreadPoolDevice::ComputeAsync(kernel, context, std::move(end));
      });
}

void MetsDevice::CopyTensorInSameDevice(
    const Tensor* input, Tensor* output,
    const tensorflow::DeviceContext* device_context,
    tensorflow::StatusCallback done) {
  const mets_access accesses[] = {
      {tensorflow::DMAHelper::base(input), 0, METS_READ},
      {tensorflow::DMAHelper::base(output), 0, METS_WRITE}};
  mets_op* op = nullptr;
  const bool ours = !memory_->forked() && (memory_->Owns(accesses[0].address) ||
                                           memory_->Owns(accesses[1].address));
  if (ours && memory_->api().op_begin(memory_->device(), nullptr, accesses, 2,
                                      0, &op) == METS_OUT_OF_MEMORY) {
    done(absl::ResourceExhaustedError(memory_->api().last_error()));
    return;
  }
  // The copy is done when the base class has returned.
  ThreadPoolDevice::CopyTensorInSameDevice(input, output, device_context,
                                           std::move(done));
  if (ours) memory_->api().op_end(op, nullptr);
}

}  // namespace mets
