#include "common/device/cuda/cuda_bus_probe.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace mets {

absl::StatusOr<std::unique_ptr<CudaBusProbe>> CudaBusProbe::Create(
    const CudaApi& api, const CudaDevice& device, Bytes size) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                        CudaContext::Retain(api, device));
  auto probe =
      absl::WrapUnique(new CudaBusProbe(api, std::move(context), size));
  METS_RETURN_IF_ERROR(probe->Prepare());
  return probe;
}

absl::Status CudaBusProbe::Prepare() {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  METS_RETURN_IF_ERROR(api_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  METS_RETURN_IF_ERROR(api_.cuMemAlloc(&device_, size_.count()));
  return api_.cuMemHostAlloc(&host_, size_.count(), 0);
}

CudaBusProbe::~CudaBusProbe() {
  const CudaContext::Scope scope(*context_);
  if (!scope.status().ok()) return;
  if (host_ != nullptr) api_.cuMemFreeHost(host_).IgnoreError();
  if (device_ != 0) api_.cuMemFree(device_).IgnoreError();
  if (stream_ != nullptr) api_.cuStreamDestroy(stream_).IgnoreError();
}

absl::Status CudaBusProbe::CopyOut(int times) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  for (int i = 0; i < times; ++i) {
    METS_RETURN_IF_ERROR(
        api_.cuMemcpyDtoHAsync(host_, device_, size_.count(), stream_));
  }
  return api_.cuStreamSynchronize(stream_);
}

absl::Status CudaBusProbe::CopyIn(int times) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  for (int i = 0; i < times; ++i) {
    METS_RETURN_IF_ERROR(
        api_.cuMemcpyHtoDAsync(device_, host_, size_.count(), stream_));
  }
  return api_.cuStreamSynchronize(stream_);
}

absl::StatusOr<absl::Duration> CudaBusProbe::AllocateAndFree(Bytes bytes,
                                                             int times) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  const absl::Time begin = absl::Now();
  for (int i = 0; i < times; ++i) {
    CUdeviceptr memory = 0;
    METS_RETURN_IF_ERROR(api_.cuMemAlloc(&memory, bytes.count()));
    METS_RETURN_IF_ERROR(api_.cuMemFree(memory));
  }
  return (absl::Now() - begin) / times;
}

// The first allocation fills the driver's pool, which keeps its memory until
// the stream is synchronised.
absl::StatusOr<absl::Duration> CudaBusProbe::AllocateFromPool(Bytes bytes,
                                                              int times) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  absl::Time begin;
  for (int i = -1; i < times; ++i) {
    if (i == 0) begin = absl::Now();
    CUdeviceptr memory = 0;
    METS_RETURN_IF_ERROR(api_.cuMemAllocAsync(&memory, bytes.count(), stream_));
    METS_RETURN_IF_ERROR(api_.cuMemFreeAsync(memory, stream_));
  }
  const absl::Duration time = (absl::Now() - begin) / times;
  METS_RETURN_IF_ERROR(api_.cuStreamSynchronize(stream_));
  return time;
}

}  // namespace mets
