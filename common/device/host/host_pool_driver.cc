#include "common/device/host/host_pool_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/device/host/huge_pages.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace mets {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

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

UniqueFd OpenMemfd(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(memfd_create(name, flags | MFD_NOEXEC_SEAL));
  if (!fd.ok() && errno == EINVAL) fd = UniqueFd(memfd_create(name, flags));
  return fd;
}

absl::StatusOr<Bytes> AvailableMemory(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  char line[256];
  long long kib = -1;
  while (kib < 0 && std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %lld kB", &kib) != 1) kib = -1;
  }
  std::fclose(file);
  if (kib < 0) {
    return absl::InternalError(absl::StrCat("no MemAvailable in ", path));
  }
  return KiB(kib);
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
  absl::StatusOr<UniqueFd> fd = Create("mets-chunk", size);
  if (!fd.ok()) Unreserve(size);
  return fd;
}

absl::StatusOr<UniqueFd> HostPoolDriver::AdoptChunk(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(CheckClass(size));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "adopt chunk");
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
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
  if (size <= Bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an extent of ", size.count(), " bytes"));
  }
  return Create("mets-extent", size);
}

absl::StatusOr<Bytes> HostPoolDriver::FreeBytes() const {
  METS_ASSIGN_OR_RETURN(Bytes machine, AvailableMemory(options_.meminfo_path));
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

absl::Status HostPoolDriver::CheckMachine(Bytes size) const {
  METS_ASSIGN_OR_RETURN(Bytes free, AvailableMemory(options_.meminfo_path));
  if (size + kMachineReserve <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the machine has only ", FormatBytes(free), " of memory available, ",
      FormatBytes(size), " were wanted and ", FormatBytes(kMachineReserve),
      " stay free; choose a smaller device or swap space"));
}

absl::StatusOr<UniqueFd> HostPoolDriver::Create(const char* name,
                                                Bytes size) const {
  METS_RETURN_IF_ERROR(CheckMachine(size));
  UniqueFd fd = OpenMemfd(name);
  if (!fd.ok()) return ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), size.count()) != 0) {
    return ErrnoToStatus(errno, "ftruncate");
  }
  if (options_.huge_pages) AllocateHugePages(fd.get(), size);
  int result;
  do {
    result = fallocate(fd.get(), 0, 0, size.count());
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return ErrnoToStatus(errno, absl::StrCat("allocate ", FormatBytes(size)));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return ErrnoToStatus(errno, "seal");
  }
  return fd;
}

}  // namespace mets
