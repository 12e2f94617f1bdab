// What NVML, the driver's management library, is asked for.
#ifndef METS_COMMON_DEVICE_CUDA_NVML_H_
#define METS_COMMON_DEVICE_CUDA_NVML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/device/cuda/cuda_devices.h"

namespace mets {

// Memory of a device that no process uses. Needs no context, unlike the
// driver's own call. Loads libnvidia-ml.so.1 at run time. FAILED_PRECONDITION,
// saying what to do, when that is not there (a container without the 'utility'
// capability); NOT_FOUND for an unknown UUID.
absl::StatusOr<Bytes> FreeCudaMemory(const std::string& uuid);

// What copies to or from the host reach, one way, in bytes a second: 87 % of
// the fastest link that device and slot agree on (an H200 on PCIe 5 x16 copies
// at 55 of 63 GB/s). Errors as above, and UNIMPLEMENTED for unknown links.
absl::StatusOr<double> CudaBusSpeed(const std::string& uuid);

// Processes that compute on a device. Errors as above.
absl::StatusOr<std::vector<CudaProcess>> CudaProcessesOf(
    const std::string& uuid);

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_NVML_H_
