// CUDA devices, for code that knows no CUDA.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_DEVICES_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_DEVICES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/device/bus_probe.h"
#include "common/device/map_driver.h"
#include "common/device/pool_driver.h"

namespace mets {

struct CudaDeviceInfo {
  std::string id;    // UUID: "GPU-…", of a MIG instance "MIG-…".
  std::string name;  // For people, e.g. "NVIDIA H100 80GB HBM3".
  Bytes total;
};

// All functions load the NVIDIA driver when they are called first; nothing
// links it. NOT_FOUND when this machine has none or no device;
// FAILED_PRECONDITION when it is too old; UNIMPLEMENTED when METS was built
// without CUDA's headers. The text says so.

// The devices that CUDA_VISIBLE_DEVICES leaves, in the driver's order.
absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices();

// Memory of a device that no process uses. FAILED_PRECONDITION when NVML, the
// driver's management library, is not there.
absl::StatusOr<Bytes> CudaDeviceFreeBytes(const std::string& id);

// A process that computes on a device.
struct CudaProcess {
  int pid = 0;
  Bytes used;  // Of the device; what METS lends it is not counted.
};
// Those that this process's pid namespace shows. Errors as above.
absl::StatusOr<std::vector<CudaProcess>> CudaDeviceProcesses(
    const std::string& id);

// The daemon's view of a device of which METS may use `total`. Makes no
// context.
absl::StatusOr<std::unique_ptr<PoolDriver>> OpenCudaPool(const std::string& id,
                                                         Bytes total);

// A client's view, in the process's primary context, which is made if there is
// none. NOT_FOUND when CUDA_VISIBLE_DEVICES hides the device.
absl::StatusOr<std::unique_ptr<MapDriver>> OpenCudaMap(const std::string& id);

// Plain copies and allocations of a device, for comparison.
absl::StatusOr<std::unique_ptr<BusProbe>> OpenCudaBusProbe(
    const std::string& id, Bytes size);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_DEVICES_H_
