#include "common/device/host/host_pool_driver.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

const std::vector<Bytes>& ChunkClasses() {
  static const std::vector<Bytes>& classes =
      *new std::vector<Bytes>{KiB(64), KiB(256), MiB(1), MiB(4), MiB(16)};
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

HostPoolDriver::HostPoolDriver(HostPoolOptions options)
    : options_(std::move(options)) {}

PoolDriverInfo HostPoolDriver::info() const {
  return {"host", options_.total, ChunkClasses()};
}

absl::StatusOr<UniqueFd> HostPoolDriver::CreateChunk(Bytes size) {
  METS_RETURN_IF_ERROR(CheckClass(size));
  METS_RETURN_IF_ERROR(Reserve(size));
  absl::StatusOr<UniqueFd> fd =
      CreateHostMemory("mets-chunk", size, memory_options());
  if (!fd.ok()) Unreserve(size);
  return fd;
}

absl::StatusOr<UniqueFd> HostPoolDriver::AdoptChunk(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(CheckClass(size));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "adopt chunk");
  if (!IsSealedHostMemory(fd.get())) {
    return absl::InvalidArgumentError(
        "adopt chunk: the descriptor is no chunk of a host device");
  }
  if (info.st_size != size.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("adopt chunk: ", info.st_size, " bytes where ",
                     size.count(), " were expected"));
  }
  METS_RETURN_IF_ERROR(Reserve(size));
  return fd;
}

absl::Status HostPoolDriver::ReleaseChunk(UniqueFd fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "release chunk");
  const Bytes size(info.st_size);
  METS_RETURN_IF_ERROR(CheckClass(size));
  fd.reset();
  Unreserve(size);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> HostPoolDriver::CreateExtent(Bytes size) {
  return CreateHostExtent(size, memory_options());
}

absl::StatusOr<Bytes> HostPoolDriver::FreeBytes() const {
  METS_ASSIGN_OR_RETURN(Bytes machine, FreeHostMemory(options_.meminfo_path));
  absl::MutexLock lock(&mutex_);
  return std::min(options_.total - used_, machine);
}

absl::Status HostPoolDriver::Reserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  if (size > options_.total - used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a chunk of ", FormatBytes(size), ": the device of ",
                     FormatBytes(options_.total), " has only ",
                     FormatBytes(options_.total - used_), " left"));
  }
  used_ += size;
  return absl::OkStatus();
}

void HostPoolDriver::Unreserve(Bytes size) {
  absl::MutexLock lock(&mutex_);
  METS_CHECK(size <= used_) << "released " << size << " of " << used_;
  used_ -= size;
}

}  // namespace mets
