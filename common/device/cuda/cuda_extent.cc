#include "common/device/cuda/cuda_extent.h"

#include <sys/mman.h>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/device/host/host_memory.h"

namespace mets {

absl::StatusOr<std::unique_ptr<CudaExtent>> CudaExtent::Register(
    const CudaApi& api, UniqueFd fd, Bytes size) {
  METS_ASSIGN_OR_RETURN(char* base, MapHostExtent(fd, size));
  auto extent = absl::WrapUnique(new CudaExtent(api, base, size));
  METS_RETURN_IF_ERROR(api.cuMemHostRegister(base, size.count(), 0));
  extent->registered_ = true;
  return extent;
}

CudaExtent::~CudaExtent() {
  if (registered_) api_.cuMemHostUnregister(base_).IgnoreError();
  munmap(base_, size_.count());
}

}  // namespace mets
