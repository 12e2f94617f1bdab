#include "common/device/cuda/cuda_pool_driver.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr CUmemAllocationHandleType kDescriptor =
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// A buffer is mapped with one call for each chunk, and mapping costs about as
// much for 128 MiB as for 2 MiB: large buffers get large chunks.
std::vector<Bytes> ChunkClasses() {
  return {MiB(2), MiB(8), MiB(32), MiB(128)};
}

}  // namespace

CudaPoolDriver::CudaPoolDriver(const CudaApi& api, CudaDevice device,
                               CudaPoolOptions options)
    : api_(api),
      device_(std::move(device)),
      options_(std::move(options)),
      budget_(options_.total, ChunkClasses(), "pool") {}

PoolDriverInfo CudaPoolDriver::info() const {
  const absl::StatusOr<double> bus = options_.bus_speed(device_.id);
  return {"cuda", budget_.total(), budget_.classes(), bus.ok() ? *bus : 0,
          kCudaMoves};
}

absl::StatusOr<UniqueFd> CudaPoolDriver::CreateChunk(Bytes size) {
  METS_RETURN_IF_ERROR(budget_.CheckClass(size));
  METS_RETURN_IF_ERROR(budget_.Reserve(size));
  absl::StatusOr<UniqueFd> fd = CreateAndExport(size);
  if (fd.ok()) {
    Remember(*fd, size);
  } else {
    budget_.Unreserve(size);
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
        FormatBytes(budget_.total()), "; is another program on the device? (",
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
  METS_RETURN_IF_ERROR(budget_.CheckClass(size));
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
  METS_RETURN_IF_ERROR(budget_.Reserve(size));
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
  budget_.Unreserve(size);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CudaPoolDriver::CreateExtent(Bytes size) {
  return CreateHostExtent(size, options_.host_memory);
}

absl::StatusOr<UniqueFd> CudaPoolDriver::AdoptExtent(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(CheckHostMemory(fd.get(), size));
  return fd;
}

absl::StatusOr<Bytes> CudaPoolDriver::FreeBytes() const {
  METS_ASSIGN_OR_RETURN(const Bytes free, options_.free_memory(device_.id));
  return std::min(budget_.left(), free);
}

void CudaPoolDriver::Remember(const UniqueFd& fd, Bytes size) {
  absl::MutexLock lock(&mutex_);
  sizes_[fd.get()] = size;
}

}  // namespace mets
