#include "common/device/cuda/cuda_context.h"

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"

namespace mets {

absl::StatusOr<std::unique_ptr<CudaContext>> CudaContext::Retain(
    const CudaApi& api, const CudaDevice& device) {
  CUcontext context;
  METS_RETURN_IF_ERROR(api.cuDevicePrimaryCtxRetain(&context, device.device));
  return absl::WrapUnique(new CudaContext(api, device.device, context));
}

CudaContext::~CudaContext() {
  // At the end of the process the driver may have gone before.
  api_.cuDevicePrimaryCtxRelease(device_).IgnoreError();
}

CudaContext::Scope::Scope(const CudaContext& context)
    : api_(context.api_), status_(api_.cuCtxPushCurrent(context.context_)) {
  if (!status_.ok()) return;
  api_.cuThreadExchangeStreamCaptureMode(&mode_).IgnoreError();
}

CudaContext::Scope::~Scope() {
  if (!status_.ok()) return;
  api_.cuThreadExchangeStreamCaptureMode(&mode_).IgnoreError();
  CUcontext popped;
  api_.cuCtxPopCurrent(&popped).IgnoreError();
}

}  // namespace mets
