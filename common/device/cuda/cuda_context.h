// CudaContext: the process's primary context of a device.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_CONTEXT_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_CONTEXT_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_device.h"

namespace mets {

// The context that the CUDA runtime, and so every framework, uses too: made if
// the process has none (0.5 GiB of the device), and kept until this object and
// all others have let go. Thread-safe.
class CudaContext {
 public:
  // `api` must outlive the context.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Retain(
      const CudaApi& api, const CudaDevice& device);
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext();

  // While it lives, the calling thread is in the context, and its calls do not
  // break a stream capture that the program has begun.
  class Scope {
   public:
    explicit Scope(const CudaContext& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // Not OK: the thread is in no context of ours, and must not go on.
    const absl::Status& status() const { return status_; }

   private:
    const CudaApi& api_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    absl::Status status_;
  };

 private:
  CudaContext(const CudaApi& api, CUdevice device, CUcontext context)
      : api_(api), device_(device), context_(context) {}

  const CudaApi& api_;
  const CUdevice device_;
  const CUcontext context_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_CONTEXT_H_
