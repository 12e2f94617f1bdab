// BusProbe: what a device can do without METS.
#ifndef METS_COMMON_DEVICE_BUS_PROBE_H_
#define METS_COMMON_DEVICE_BUS_PROBE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets {

// Plain copies and allocations of a device, which METS's own are measured
// against. It has `size()` bytes of the device, outside any pool, and as much
// host memory, as the device's copies like it best.
//
// Not thread-safe. Everything blocks.
class BusProbe {
 public:
  virtual ~BusProbe() = default;

  virtual Bytes size() const = 0;
  // Copies all of it, `times` times, to the host and from it.
  virtual absl::Status CopyOut(int times) = 0;
  virtual absl::Status CopyIn(int times) = 0;
  // Mean time to allocate and free `bytes` with the device's own allocator, and
  // with its allocator that keeps what is freed (cudaMallocAsync).
  // UNIMPLEMENTED where the device has none.
  virtual absl::StatusOr<absl::Duration> AllocateAndFree(Bytes bytes,
                                                         int times) = 0;
  virtual absl::StatusOr<absl::Duration> AllocateFromPool(Bytes bytes,
                                                          int times) = 0;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_BUS_PROBE_H_
