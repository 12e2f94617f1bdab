#include "common/device/cuda/cuda_pool_driver.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr CUmemAllocationHandleType kDescriptor =
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// A buffer is mapped with one call for each chunk, and mapping costs about as
// much for 128 MiB as for 2 MiB: large buffers get large chunks.
const std::vector<Bytes>& ChunkClasses() {
  static const std::vector<Bytes>& classes =
      *new std::vector<Bytes>{MiB(2), MiB(8), MiB(32), MiB(128)};
  return classes;
}

absl::Status CheckClass(Bytes size) {
  const std::vector<Bytes>& classes = ChunkClasses();
  if (std::find(classes.begin(), classes.end(), size) != classes.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(size.count(), " bytes are no chunk class"));
}

}  // namespace

CudaPoolDriver::CudaPoolDriver(const CudaApi& api, CudaDevice device,
                               CudaPoolOptions options)
    : api_(api), device_(std::move(device)), options_(std::move(options)) {}

PoolDriverInfo CudaPoolDriver::info() const {
  return {"cuda", options_.total, ChunkClasses()};
}

absl::StatusOr<UniqueFd> CudaPoolDriver::CreateChunk(Bytes size) {
  METS_RETURN_IF_ERROR(CheckClass(size));
  METS_RETURN_IF_ERROR(Reserve(size));
  absl::StatusOr<UniqueFd> fd = CreateAndExport(size);
  if (fd.ok()) {
    Remember(*fd, size);
  } else {
    Unreserve(size);
  }
  return fd;
}

absl::StatusOr<UniqueFd> CudaPoolDriver::CreateAndExport(Bytes size) const {
  const CUmemAllocationProp properties = device_.ChunkProperties();
  CUmemGenericAllocationHandle chunk;
  const absl::Status created =
      api_.cuMemCreate(&chunk, size.count(), &properties, 0);
  if (absl::IsResourceExhausted(created)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a chunk of ", FormatBytes(size), ": ", device_.id,
        " has no such memory left, although METS has not used all of its ",
        FormatBytes(options_.total), "; is another program on the device? (",
        created.message(), ")"));
  }
  METS_RETURN_IF_ERROR(created);
  int number = -1;
  const absl::Status exported =
      api_.cuMemExportToShareableHandle(&number, chunk, kDescriptor, 0);
  UniqueFd fd(exported.ok() ? number : -1);
  METS_RETURN_IF_ERROR(api_.cuMemRelease(chunk));
  METS_RETURN_IF_ERROR(exported);
  if (fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return ErrnoToStatus(errno, "FD_CLOEXEC");
  }
  return fd;
}

absl::StatusOr<UniqueFd> CudaPoolDriver::AdoptChunk(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(CheckClass(size));
  CUmemGenericAllocationHandle chunk;
  const absl::Status imported = api_.cuMemImportFromShareableHandle(
      &chunk, reinterpret_cast<void*>(static_cast<intptr_t>(fd.get())),
      kDescriptor);
  if (!imported.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt chunk: the descriptor is no memory of ", device_.id,
                     " (", imported.message(), ")"));
  }
  const absl::Status checked = CheckSize(chunk, size);
  METS_RETURN_IF_ERROR(api_.cuMemRelease(chunk));
  METS_RETURN_IF_ERROR(checked);
  METS_RETURN_IF_ERROR(Reserve(size));
  Remember(fd, size);
  return fd;
}

absl::Status CudaPoolDriver::CheckSize(CUmemGenericAllocationHandle chunk,
                                       Bytes size) const {
  const size_t length = (size + kCudaGranularity).count();
  CUdeviceptr place = 0;
  METS_RETURN_IF_ERROR(api_.cuMemAddressReserve(&place, length, 0, 0, 0));
  const absl::Status checked = CheckChunkSize(api_, chunk, size, place);
  METS_RETURN_IF_ERROR(api_.cuMemAddressFree(place, length));
  return checked;
}

absl::Status CudaPoolDriver::ReleaseChunk(UniqueFd fd) {
  Bytes size;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = sizes_.find(fd.get());
    if (it == sizes_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("release chunk: descriptor ", fd.get(), " is none"));
    }
    size = it->second;
    sizes_.erase(it);
  }
  fd.reset();
  Unreserve(size);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CudaPoolDriver::CreateExtent(Bytes size) {
  return CreateHostExtent(size, options_.host_memory);
}

absl::StatusOr<Bytes> CudaPoolDriver::FreeBytes() const {
  METS_ASSIGN_OR_RETURN(const Bytes free, options_.free_memory(device_.id));
  absl::MutexLock lock(&mutex_);
  return std::min(options_.total - used_, free);
}

absl::Status CudaPoolDriver::Reserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  if (size > options_.total - used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a chunk of ", FormatBytes(size), ": the pool of ",
                     FormatBytes(options_.total), " has only ",
                     FormatBytes(options_.total - used_), " left"));
  }
  used_ += size;
  return absl::OkStatus();
}

void CudaPoolDriver::Unreserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  METS_CHECK(size <= used_) << "released " << size << " of " << used_;
  used_ -= size;
}

void CudaPoolDriver::Remember(const UniqueFd& fd, Bytes size) {
  absl::MutexLock lock(&mutex_);
  sizes_[fd.get()] = size;
}

}  // namespace mets
