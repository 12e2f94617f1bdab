// HostBusProbe: copies between two pieces of host memory.
#ifndef METS_COMMON_DEVICE_HOST_HOST_BUS_PROBE_H_
#define METS_COMMON_DEVICE_HOST_HOST_BUS_PROBE_H_

#include <memory>

#include "common/device/bus_probe.h"

namespace mets {

// A host device's memory is host memory: its bus is memcpy, its allocator mmap
// with all pages present.
class HostBusProbe : public BusProbe {
 public:
  explicit HostBusProbe(Bytes size);

  Bytes size() const override { return size_; }
  absl::Status CopyOut(int times) override;
  absl::Status CopyIn(int times) override;
  absl::StatusOr<absl::Duration> AllocateAndFree(Bytes bytes,
                                                 int times) override;
  absl::StatusOr<absl::Duration> AllocateFromPool(Bytes bytes,
                                                  int times) override;

 private:
  const Bytes size_;
  const std::unique_ptr<char[]> device_, host_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_BUS_PROBE_H_
