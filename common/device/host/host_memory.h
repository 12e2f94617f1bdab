// Memory of the machine in descriptors of its own: chunks of host devices, and
// swap extents.
#ifndef METS_COMMON_DEVICE_HOST_HOST_MEMORY_H_
#define METS_COMMON_DEVICE_HOST_HOST_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"

namespace mets {

struct HostMemoryOptions {
  // Where the machine's free memory is read (tests give another file).
  std::string meminfo_path = "/proc/meminfo";
  // Of huge pages as far as the kernel can.
  bool huge_pages = true;
};

// So much of the machine's memory stays free.
constexpr Bytes kMachineReserve = MiB(64);

// The machine's memory that can be used without swapping.
absl::StatusOr<Bytes> FreeHostMemory(const std::string& meminfo_path);

// A memfd of a fixed, sealed size with all its blocks allocated; `name` is how
// /proc/*/maps calls it. RESOURCE_EXHAUSTED, with the numbers, when the machine
// has no such memory.
absl::StatusOr<UniqueFd> CreateHostMemory(const char* name, Bytes size,
                                          const HostMemoryOptions& options);

// CreateHostMemory for a swap extent. INVALID_ARGUMENT when `size` is nothing.
absl::StatusOr<UniqueFd> CreateHostExtent(Bytes size,
                                          const HostMemoryOptions& options);

// Maps a swap extent whole; forked children do not have the mapping. For
// munmap. INVALID_ARGUMENT when `fd` does not have exactly `size` bytes.
absl::StatusOr<char*> MapHostExtent(const UniqueFd& fd, Bytes size);

// INVALID_ARGUMENT when `fd` is no such memory of exactly `size` bytes.
absl::Status CheckHostMemory(int fd, Bytes size);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_MEMORY_H_
