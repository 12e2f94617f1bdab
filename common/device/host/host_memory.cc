#include "common/device/host/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/device/host/huge_pages.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace mets {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

UniqueFd OpenMemfd(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(memfd_create(name, flags | MFD_NOEXEC_SEAL));
  if (!fd.ok() && errno == EINVAL) fd = UniqueFd(memfd_create(name, flags));
  return fd;
}

absl::Status CheckMachine(Bytes size, const std::string& meminfo_path) {
  METS_ASSIGN_OR_RETURN(Bytes free, FreeHostMemory(meminfo_path));
  if (size + kMachineReserve <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the machine has only ", FormatBytes(free), " of memory available, ",
      FormatBytes(size), " were wanted and ", FormatBytes(kMachineReserve),
      " stay free; choose a smaller device or swap space"));
}

}  // namespace

absl::StatusOr<Bytes> FreeHostMemory(const std::string& path) {
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

absl::StatusOr<UniqueFd> CreateHostMemory(const char* name, Bytes size,
                                          const HostMemoryOptions& options) {
  METS_RETURN_IF_ERROR(CheckMachine(size, options.meminfo_path));
  UniqueFd fd = OpenMemfd(name);
  if (!fd.ok()) return ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), size.count()) != 0) {
    return ErrnoToStatus(errno, "ftruncate");
  }
  if (options.huge_pages) AllocateHugePages(fd.get(), size);
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

absl::StatusOr<UniqueFd> CreateHostExtent(Bytes size,
                                          const HostMemoryOptions& options) {
  if (size <= Bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an extent of ", size.count(), " bytes"));
  }
  return CreateHostMemory("mets-extent", size, options);
}

absl::StatusOr<char*> MapHostExtent(const UniqueFd& fd, Bytes size) {
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
  if (madvise(base, size.count(), MADV_DONTFORK) != 0) {
    const int error = errno;
    munmap(base, size.count());
    return ErrnoToStatus(error, "MADV_DONTFORK");
  }
  return static_cast<char*>(base);
}

absl::Status CheckHostMemory(int fd, Bytes size) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError(
        "the descriptor is no memory of a host device, nor swap space");
  }
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoToStatus(errno, "fstat");
  if (info.st_size == size.count()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the descriptor has ", info.st_size, " bytes where ",
                   size.count(), " were expected"));
}

}  // namespace mets
