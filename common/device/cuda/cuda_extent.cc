#include "common/device/cuda/cuda_extent.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {

absl::StatusOr<std::unique_ptr<CudaExtent>> CudaExtent::Register(
    const CudaApi& api, UniqueFd fd, Bytes size) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) {
    return ErrnoToStatus(errno, "register extent");
  }
  if (info.st_size != size.count() || size <= Bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("register extent: ", info.st_size, " bytes where ",
                     size.count(), " were announced"));
  }
  void* base = mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
  if (base == MAP_FAILED) {
    return ErrnoToStatus(errno,
                         absl::StrCat("map an extent of ", FormatBytes(size)));
  }
  auto extent =
      absl::WrapUnique(new CudaExtent(api, static_cast<char*>(base), size));
  if (madvise(base, size.count(), MADV_DONTFORK) != 0) {
    return ErrnoToStatus(errno, "MADV_DONTFORK");
  }
  METS_RETURN_IF_ERROR(api.cuMemHostRegister(base, size.count(), 0));
  extent->registered_ = true;
  return extent;
}

CudaExtent::~CudaExtent() {
  if (registered_) api_.cuMemHostUnregister(base_).IgnoreError();
  munmap(base_, size_.count());
}

}  // namespace mets
