#include "tf_allocator/tf/gpu/gpu_device_context.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace mets {

using tensorflow::Device;
using tensorflow::GPUDeviceContext;
using tensorflow::StatusCallback;
using tensorflow::Tensor;

namespace {

mets_stream HandleOf(const stream_executor::Stream* stream) {
  return stream->platform_specific_handle().stream;
}

}  // namespace

GpuDeviceContext::GpuDeviceContext(const GPUDeviceContext& stock,
                                   DeviceMemory* memory)
    : GPUDeviceContext(
          stock.stream_id(), stock.stream(), stock.host_to_device_stream(),
          stock.device_to_host_stream(), {stock.device_to_device_stream(0)},
          stock.host_memory_allocator()),
      memory_(memory) {}

bool GpuDeviceContext::Begin(const Tensor* read, const Tensor* written,
                             mets_stream stream, StatusCallback* done,
                             mets_op** op) const {
  *op = nullptr;
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
  api.op_name(memory_->device(), "Copy");
  const mets_status status =
      api.op_begin(memory_->device(), stream, accesses, count, 0, op);
  if (status == METS_OK) return true;
  (*done)(
      absl::ResourceExhaustedError(std::string("METS: ") + api.last_error()));
  return false;
}

// The stock functions put the copy on the stream before they return. The op
// ends then, not when the copy has been made: its callback may have to wait for
// threads that wait for this job's next turn.
void GpuDeviceContext::CopyCPUTensorToDevice(const Tensor* from, Device* device,
                                             Tensor* to, StatusCallback done,
                                             bool sync_dst_compute) const {
  const mets_stream stream = HandleOf(host_to_device_stream());
  mets_op* op;
  if (!Begin(nullptr, to, stream, &done, &op)) return;
  GPUDeviceContext::CopyCPUTensorToDevice(from, device, to, std::move(done),
                                          sync_dst_compute);
  End(op, stream);
}

void GpuDeviceContext::CopyDeviceTensorToCPU(const Tensor* from,
                                             absl::string_view edge_name,
                                             Device* device, Tensor* to,
                                             StatusCallback done) {
  const mets_stream stream = HandleOf(device_to_host_stream());
  mets_op* op;
  if (!Begin(from, nullptr, stream, &done, &op)) return;
  GPUDeviceContext::CopyDeviceTensorToCPU(from, edge_name, device, to,
                                          std::move(done));
  End(op, stream);
}

void GpuDeviceContext::CopyTensorInSameDevice(const Tensor* from,
                                              Device* device, Tensor* to,
                                              StatusCallback done) const {
  mets_op* op;
  if (!Begin(from, to, memory_->stream(), &done, &op)) return;
  GPUDeviceContext::CopyTensorInSameDevice(from, device, to, std::move(done));
  End(op, memory_->stream());
}

}  // namespace mets
