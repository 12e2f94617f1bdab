// CudaBusProbe: plain copies and allocations of a GPU.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_BUS_PROBE_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_BUS_PROBE_H_

#include <memory>

#include "common/device/bus_probe.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"

namespace mets {

// cuMemAlloc and pinned host memory, in the process's primary context.
class CudaBusProbe : public BusProbe {
 public:
  // `api` must outlive the probe. RESOURCE_EXHAUSTED when the device has not
  // `size` bytes outside METS's pool.
  static absl::StatusOr<std::unique_ptr<CudaBusProbe>> Create(
      const CudaApi& api, const CudaDevice& device, Bytes size);
  ~CudaBusProbe() override;

  Bytes size() const override { return size_; }
  absl::Status CopyOut(int times) override;
  absl::Status CopyIn(int times) override;
  absl::StatusOr<absl::Duration> AllocateAndFree(Bytes bytes,
                                                 int times) override;
  absl::StatusOr<absl::Duration> AllocateFromPool(Bytes bytes,
                                                  int times) override;

 private:
  CudaBusProbe(const CudaApi& api, std::unique_ptr<CudaContext> context,
               Bytes size)
      : api_(api), context_(std::move(context)), size_(size) {}
  absl::Status Prepare();

  const CudaApi& api_;
  const std::unique_ptr<CudaContext> context_;
  const Bytes size_;
  CUstream stream_ = nullptr;
  CUdeviceptr device_ = 0;
  void* host_ = nullptr;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_BUS_PROBE_H_
