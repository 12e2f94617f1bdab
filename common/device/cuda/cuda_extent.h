// CudaExtent: one swap extent in a client process that uses a GPU.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_EXTENT_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_EXTENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/device/cuda/cuda_api.h"

namespace mets {

// A memfd that is mapped whole and registered with the driver, so that the
// device's copy engines reach it at the speed of the bus. Needs no descriptor
// after Register. Forked children do not have the mapping. Registered and
// destroyed in the device's context.
class CudaExtent {
 public:
  // Blocks for as long as the pages take to be pinned: 0.04 to 0.1 s a GiB that
  // is populated. INVALID_ARGUMENT when `fd` does not have exactly `size`
  // bytes.
  static absl::StatusOr<std::unique_ptr<CudaExtent>> Register(
      const CudaApi& api, UniqueFd fd, Bytes size);
  CudaExtent(const CudaExtent&) = delete;
  CudaExtent& operator=(const CudaExtent&) = delete;
  ~CudaExtent();

  Bytes size() const { return size_; }
  char* base() const { return base_; }

 private:
  CudaExtent(const CudaApi& api, char* base, Bytes size)
      : api_(api), base_(base), size_(size) {}

  const CudaApi& api_;
  char* const base_;
  const Bytes size_;
  bool registered_ = false;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_EXTENT_H_
