#include "common/device/host/host_bus_probe.h"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "absl/time/clock.h"
#include "common/base/errno_status.h"

namespace mets {

HostBusProbe::HostBusProbe(Bytes size)
    : size_(size),
      device_(new char[size.count()]),
      host_(new char[size.count()]) {
  std::memset(device_.get(), 1, size.count());
  std::memset(host_.get(), 2, size.count());
}

absl::Status HostBusProbe::CopyOut(int times) {
  for (int i = 0; i < times; ++i) {
    std::memcpy(host_.get(), device_.get(), size_.count());
  }
  return absl::OkStatus();
}

absl::Status HostBusProbe::CopyIn(int times) {
  for (int i = 0; i < times; ++i) {
    std::memcpy(device_.get(), host_.get(), size_.count());
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> HostBusProbe::AllocateAndFree(Bytes bytes,
                                                             int times) {
  const absl::Time begin = absl::Now();
  for (int i = 0; i < times; ++i) {
    void* memory = mmap(nullptr, bytes.count(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return ErrnoToStatus(errno, "mmap");
    munmap(memory, bytes.count());
  }
  return (absl::Now() - begin) / times;
}

absl::StatusOr<absl::Duration> HostBusProbe::AllocateFromPool(Bytes, int) {
  return absl::UnimplementedError("host devices have no such allocator");
}

}  // namespace mets
