// CudaDevice: one GPU (or MIG instance) as the driver shows it to this process.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_DEVICE_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/device/cuda/cuda_api.h"

namespace mets {

// Chunk classes, ranges and mappings are multiples of this.
constexpr Bytes kCudaGranularity = MiB(2);
// MapDriverInfo::moves.
constexpr int kCudaMoves = 2;

struct CudaDevice {
  CUdevice device = 0;
  std::string id;    // UUID: "GPU-…", of a MIG instance "MIG-…".
  std::string name;  // For people, e.g. "NVIDIA H100 80GB HBM3".
  Bytes total;
  bool rdma = false;  // Memory can be made that network cards read and write.

  // How chunks are made on it.
  CUmemAllocationProp ChunkProperties() const;
  // Access to its memory from itself.
  CUmemAccessDesc Access() const;
};

// The devices that CUDA_VISIBLE_DEVICES leaves, in the driver's order. Needs no
// context. UNIMPLEMENTED when one cannot do what METS needs.
absl::StatusOr<std::vector<CudaDevice>> CudaDevices(const CudaApi& api);

// The one called `id`. NOT_FOUND names those that there are.
absl::StatusOr<CudaDevice> FindCudaDevice(const CudaApi& api,
                                          const std::string& id);

// INVALID_ARGUMENT unless `chunk`, which has been imported, has exactly `size`
// bytes (the driver does not tell, but refuses mappings that are too long).
// `place`: reserved addresses, `size` and kCudaGranularity long, where nothing
// is mapped.
absl::Status CheckChunkSize(const CudaApi& api,
                            CUmemGenericAllocationHandle chunk, Bytes size,
                            CUdeviceptr place);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_DEVICE_H_
