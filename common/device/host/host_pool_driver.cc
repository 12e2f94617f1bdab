#include "common/device/host/host_pool_driver.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

std::vector<Bytes> ChunkClasses() {
  return {KiB(64), KiB(256), MiB(1), MiB(4), MiB(16)};
}

}  // namespace

HostPoolDriver::HostPoolDriver(HostPoolOptions options)
    : options_(std::move(options)),
      budget_(options_.total, ChunkClasses(), "device") {}

PoolDriverInfo HostPoolDriver::info() const {
  return {"host", budget_.total(), budget_.classes()};
}

absl::StatusOr<UniqueFd> HostPoolDriver::CreateChunk(Bytes size) {
  METS_RETURN_IF_ERROR(budget_.CheckClass(size));
  METS_RETURN_IF_ERROR(budget_.Reserve(size));
  absl::StatusOr<UniqueFd> fd =
      CreateHostMemory("mets-chunk", size, memory_options());
  if (!fd.ok()) budget_.Unreserve(size);
  return fd;
}

absl::StatusOr<UniqueFd> HostPoolDriver::AdoptChunk(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(budget_.CheckClass(size));
  METS_RETURN_IF_ERROR(CheckHostMemory(fd.get(), size));
  METS_RETURN_IF_ERROR(budget_.Reserve(size));
  return fd;
}

absl::Status HostPoolDriver::ReleaseChunk(UniqueFd fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "release chunk");
  const Bytes size(info.st_size);
  METS_RETURN_IF_ERROR(budget_.CheckClass(size));
  fd.reset();
  budget_.Unreserve(size);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> HostPoolDriver::CreateExtent(Bytes size) {
  return CreateHostExtent(size, memory_options());
}

absl::StatusOr<UniqueFd> HostPoolDriver::AdoptExtent(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(CheckHostMemory(fd.get(), size));
  return fd;
}

absl::StatusOr<Bytes> HostPoolDriver::FreeBytes() const {
  METS_ASSIGN_OR_RETURN(Bytes machine, FreeHostMemory(options_.meminfo_path));
  return std::min(budget_.left(), machine);
}

}  // namespace mets
