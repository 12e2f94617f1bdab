#include "common/device/cuda/cuda_device.h"

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

std::string UuidText(const CUuuid& uuid, bool mig) {
  const std::string hex =
      absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  const absl::string_view h = hex;
  return absl::StrCat(mig ? "MIG-" : "GPU-", h.substr(0, 8), "-",
                      h.substr(8, 4), "-", h.substr(12, 4), "-",
                      h.substr(16, 4), "-", h.substr(20));
}

absl::StatusOr<bool> Can(const CudaApi& api, CUdevice device,
                         CUdevice_attribute attribute) {
  int value = 0;
  METS_RETURN_IF_ERROR(api.cuDeviceGetAttribute(&value, attribute, device));
  return value != 0;
}

absl::Status CheckAbilities(const CudaApi& api, const CudaDevice& device) {
  METS_ASSIGN_OR_RETURN(
      const bool maps,
      Can(api, device.device,
          CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  METS_ASSIGN_OR_RETURN(
      const bool exports,
      Can(api, device.device,
          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
  size_t granularity = 0;
  const CUmemAllocationProp properties = device.ChunkProperties();
  METS_RETURN_IF_ERROR(api.cuMemGetAllocationGranularity(
      &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  if (maps && exports && granularity > 0 &&
      kCudaGranularity.count() % granularity == 0) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(device.id, " (", device.name, ") cannot be shared: ",
                   !maps      ? "it has no virtual memory management"
                   : !exports ? "its memory cannot be passed on as a descriptor"
                              : absl::StrCat("its memory comes in pieces of ",
                                             granularity, " bytes")));
}

absl::StatusOr<CudaDevice> Describe(const CudaApi& api, int index) {
  CudaDevice device;
  METS_RETURN_IF_ERROR(api.cuDeviceGet(&device.device, index));
  char name[256] = {};
  METS_RETURN_IF_ERROR(
      api.cuDeviceGetName(name, sizeof(name) - 1, device.device));
  device.name = name;
  CUuuid uuid;
  METS_RETURN_IF_ERROR(api.cuDeviceGetUuid(&uuid, device.device));
  // The driver tells a MIG instance by its name alone ("… MIG 1g.10gb").
  device.id = UuidText(uuid, absl::StrContains(device.name, " MIG "));
  size_t total = 0;
  METS_RETURN_IF_ERROR(api.cuDeviceTotalMem(&total, device.device));
  device.total = Bytes(static_cast<int64_t>(total));
  METS_ASSIGN_OR_RETURN(
      device.rdma,
      Can(api, device.device,
          CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED));
  METS_RETURN_IF_ERROR(CheckAbilities(api, device));
  return device;
}

}  // namespace

CUmemAllocationProp CudaDevice::ChunkProperties() const {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.allocFlags.gpuDirectRDMACapable = rdma;
  return properties;
}

CUmemAccessDesc CudaDevice::Access() const {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

absl::StatusOr<std::vector<CudaDevice>> CudaDevices(const CudaApi& api) {
  int count = 0;
  METS_RETURN_IF_ERROR(api.cuDeviceGetCount(&count));
  std::vector<CudaDevice> devices;
  for (int i = 0; i < count; ++i) {
    METS_ASSIGN_OR_RETURN(CudaDevice device, Describe(api, i));
    devices.push_back(std::move(device));
  }
  return devices;
}

absl::StatusOr<CudaDevice> FindCudaDevice(const CudaApi& api,
                                          const std::string& id) {
  METS_ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices,
                        CudaDevices(api));
  std::string known;
  for (const CudaDevice& device : devices) {
    if (device.id == id) return device;
    absl::StrAppend(&known, known.empty() ? "" : ", ", device.id);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return absl::NotFoundError(absl::StrCat(
      "this process does not see device ", id, " but ",
      known.empty() ? "none" : known,
      visible == nullptr
          ? ""
          : absl::StrCat(" (CUDA_VISIBLE_DEVICES is '", visible, "')")));
}

absl::Status CheckChunkSize(const CudaApi& api,
                            CUmemGenericAllocationHandle chunk, Bytes size,
                            CUdeviceptr place) {
  const auto fits = [&](Bytes length) {
    if (!api.cuMemMap(place, length.count(), 0, chunk, 0).ok()) return false;
    METS_CHECK_OK(api.cuMemUnmap(place, length.count()));
    return true;
  };
  if (fits(size) && !fits(size + kCudaGranularity)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a chunk that has not ", size.count(), " bytes"));
}

}  // namespace mets
