// CudaPoolDriver: PoolDriver of a GPU.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_POOL_DRIVER_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_POOL_DRIVER_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/device/chunk_budget.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/nvml.h"
#include "common/device/host/host_memory.h"
#include "common/device/pool_driver.h"

namespace mets {

struct CudaPoolOptions {
  // So much of the device is METS's.
  Bytes total;
  HostMemoryOptions host_memory;  // Of extents.
  std::function<absl::StatusOr<Bytes>(const std::string& uuid)> free_memory =
      FreeCudaMemory;
  std::function<absl::StatusOr<double>(const std::string& uuid)> bus_speed =
      CudaBusSpeed;
};

// Chunks are the driver's physical allocations (VMM) that processes pass on as
// descriptors. The driver's own handle is released right after the export: the
// descriptor keeps the memory. Network cards can read and write it where the
// device allows that (GPUDirect RDMA). Makes no context.
//
// Creating and exporting a chunk takes 0.05 to 1 ms. A chunk is known by its
// descriptor's number: it must be released by the descriptor that CreateChunk
// or AdoptChunk returned. The bounds are those of HostPoolDriver: chunks that
// were created and not released never add up to more than `total`.
class CudaPoolDriver : public PoolDriver {
 public:
  // `api` must outlive the driver.
  CudaPoolDriver(const CudaApi& api, CudaDevice device,
                 CudaPoolOptions options);

  PoolDriverInfo info() const override;
  absl::StatusOr<UniqueFd> CreateChunk(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptChunk(UniqueFd fd, Bytes size) override;
  absl::Status ReleaseChunk(UniqueFd fd) override;
  absl::StatusOr<UniqueFd> CreateExtent(Bytes size) override;
  absl::StatusOr<UniqueFd> AdoptExtent(UniqueFd fd, Bytes size) override;
  // The smaller of what is left of `total` and what no process uses.
  absl::StatusOr<Bytes> FreeBytes() const override;

 private:
  void Remember(const UniqueFd& fd, Bytes size);
  absl::StatusOr<UniqueFd> CreateAndExport(Bytes size) const;
  absl::Status CheckSize(CUmemGenericAllocationHandle chunk, Bytes size) const;

  const CudaApi& api_;
  const CudaDevice device_;
  const CudaPoolOptions options_;
  ChunkBudget budget_;

  absl::Mutex mutex_;
  absl::flat_hash_map<int, Bytes> sizes_ ABSL_GUARDED_BY(mutex_);  // By fd.
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_POOL_DRIVER_H_
