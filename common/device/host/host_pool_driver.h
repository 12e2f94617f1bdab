// HostPoolDriver: PoolDriver of a host device.
#ifndef METS_COMMON_DEVICE_HOST_HOST_POOL_DRIVER_H_
#define METS_COMMON_DEVICE_HOST_HOST_POOL_DRIVER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/device/chunk_budget.h"
#include "common/device/host/host_memory.h"
#include "common/device/pool_driver.h"

namespace mets {

struct HostPoolOptions {
  // The device's size.
  Bytes total;
  // See HostMemoryOptions.
  std::string meminfo_path = "/proc/meminfo";
  bool huge_pages = true;
};

// Chunks are memfds of a fixed, sealed size with all their blocks allocated.
// In /proc/*/maps they are called "mets-chunk", extents "mets-extent".
//
// The device is an amount, not a place: chunks that were created and not
// released never add up to more than `total`. Memory of released chunks that
// other processes still map is not known here; metsd's ledger knows it.
// At least kMachineReserve of the machine's memory stays free.
class HostPoolDriver : public PoolDriver {
 public:
  explicit HostPoolDriver(HostPoolOptions options);

  PoolDriverInfo info() const override;
  absl::StatusOr<UniqueFd> CreateChunk(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptChunk(UniqueFd fd, Bytes size) override;
  absl::Status ReleaseChunk(UniqueFd fd) override;
  absl::StatusOr<UniqueFd> CreateExtent(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptExtent(UniqueFd fd, Bytes size) override;
  // The smaller of what is left of `total` and the machine's free memory.
  absl::StatusOr<Bytes> FreeBytes() const override;

 private:
  HostMemoryOptions memory_options() const {
    return {options_.meminfo_path, options_.huge_pages};
  }

  const HostPoolOptions options_;
  ChunkBudget budget_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_POOL_DRIVER_H_
