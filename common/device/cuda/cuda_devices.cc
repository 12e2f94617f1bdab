#include "common/device/cuda/cuda_devices.h"

#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_bus_probe.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_map_driver.h"
#include "common/device/cuda/cuda_pool_driver.h"
#include "common/device/cuda/nvml.h"

namespace mets {

absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices() {
  METS_ASSIGN_OR_RETURN(const CudaApi* api, LoadCudaApi());
  METS_ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices,
                        CudaDevices(*api));
  std::vector<CudaDeviceInfo> infos;
  for (const CudaDevice& device : devices) {
    infos.push_back({device.id, device.name, device.total});
  }
  return infos;
}

absl::StatusOr<Bytes> CudaDeviceFreeBytes(const std::string& id) {
  return FreeCudaMemory(id);
}

absl::StatusOr<std::vector<CudaProcess>> CudaDeviceProcesses(
    const std::string& id) {
  return CudaProcessesOf(id);
}

absl::StatusOr<std::unique_ptr<PoolDriver>> OpenCudaPool(const std::string& id,
                                                         Bytes total) {
  METS_ASSIGN_OR_RETURN(const CudaApi* api, LoadCudaApi());
  METS_ASSIGN_OR_RETURN(CudaDevice device, FindCudaDevice(*api, id));
  CudaPoolOptions options;
  options.total = total;
  return std::make_unique<CudaPoolDriver>(*api, std::move(device),
                                          std::move(options));
}

absl::StatusOr<std::unique_ptr<MapDriver>> OpenCudaMap(const std::string& id) {
  METS_ASSIGN_OR_RETURN(const CudaApi* api, LoadCudaApi());
  METS_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice(*api, id));
  return CudaMapDriver::Create(*api, device, CudaMapOptions());
}

absl::StatusOr<std::unique_ptr<BusProbe>> OpenCudaBusProbe(
    const std::string& id, Bytes size) {
  METS_ASSIGN_OR_RETURN(const CudaApi* api, LoadCudaApi());
  METS_ASSIGN_OR_RETURN(const CudaDevice device, FindCudaDevice(*api, id));
  return CudaBusProbe::Create(*api, device, size);
}

}  // namespace mets
