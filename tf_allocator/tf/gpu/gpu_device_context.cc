#include "tf_allocator/tf/gpu/gpu_device_context.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"

namespace mets {

using tensorflow::Device;
using tensorflow::GPUDeviceContext;
using tensorflow::StatusCallback;
using tensorflow::Tensor;

GpuDeviceContext::GpuDeviceContext(const GPUDeviceContext& stock,
                                   DeviceMemory* memory)
    : GPUDeviceContext(
          stock.stream_id(), stock.stream(), stock.host_to_device_stream(),
          stock.device_to_host_stream(), {stock.device_to_device_stream(0)},
          stock.host_memory_allocator()),
      memory_(memory) {}

bool GpuDeviceContext::Begin(const Tensor* read, const Tensor* written,
                             StatusCallback* done) const {
  mets_access accesses[2];
  size_t count = 0;
  for (const Tensor* tensor : {read, written}) {
    if (tensor == nullptr) continue;
    const void* address = tensorflow::DMAHelper::base(tensor);
    if (!memory_->Owns(address)) continue;
    accesses[count++] = {address, 0, tensor == read ? METS_READ : METS_WRITE};
  }
  if (count == 0 || memory_->forked()) return true;
  const MetsApi& api = memory_->api();
  mets_op* op = nullptr;
  api.op_name(memory_->device(), "Copy");
  if (api.op_begin(memory_->device(), memory_->stream(), accesses, count, 0,
                   &op) != METS_OK) {
    (*done)(
        absl::ResourceExhaustedError(std::string("METS: ") + api.last_error()));
    return false;
  }
  // The copy may end on another thread, which allocates for itself.
  api.op_detach(op);
  // It has been made then, so that the copy's own stream need not be named:
  // libmets would order each later use of the slab after that stream.
  *done = [this, op, done = std::move(*done)](const absl::Status& status) {
    memory_->api().op_end(op, memory_->stream());
    done(status);
  };
  return true;
}

void GpuDeviceContext::CopyCPUTensorToDevice(const Tensor* from, Device* device,
                                             Tensor* to, StatusCallback done,
                                             bool sync_dst_compute) const {
  if (!Begin(nullptr, to, &done)) return;
  GPUDeviceContext::CopyCPUTensorToDevice(from, device, to, std::move(done),
                                          sync_dst_compute);
}

void GpuDeviceContext::CopyDeviceTensorToCPU(const Tensor* from,
                                             absl::string_view edge_name,
                                             Device* device, Tensor* to,
                                             StatusCallback done) {
  if (!Begin(from, nullptr, &done)) return;
  GPUDeviceContext::CopyDeviceTensorToCPU(from, edge_name, device, to,
                                          std::move(done));
}

void GpuDeviceContext::CopyTensorInSameDevice(const Tensor* from,
                                              Device* device, Tensor* to,
                                              StatusCallback done) const {
  if (!Begin(from, to, &done)) return;
  GPUDeviceContext::CopyTensorInSameDevice(from, device, to, std::move(done));
}

}  // namespace mets
