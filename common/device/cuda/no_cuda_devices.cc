// cuda_devices.h for a build without CUDA's headers.
#include "common/device/cuda/cuda_devices.h"

namespace mets {
namespace {

absl::Status NotBuilt() {
  return absl::UnimplementedError(
      "this METS was built without CUDA's headers (cuda.h) and has no CUDA "
      "devices; deploy/setup.sh installs them");
}

}  // namespace

absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices() {
  return NotBuilt();
}

absl::StatusOr<Bytes> CudaDeviceFreeBytes(const std::string&) {
  return NotBuilt();
}

absl::StatusOr<std::vector<CudaProcess>> CudaDeviceProcesses(
    const std::string&) {
  return NotBuilt();
}

absl::StatusOr<std::unique_ptr<PoolDriver>> OpenCudaPool(const std::string&,
                                                         Bytes) {
  return NotBuilt();
}

absl::StatusOr<std::unique_ptr<MapDriver>> OpenCudaMap(const std::string&) {
  return NotBuilt();
}

absl::StatusOr<std::unique_ptr<BusProbe>> OpenCudaBusProbe(const std::string&,
                                                           Bytes) {
  return NotBuilt();
}

}  // namespace mets
