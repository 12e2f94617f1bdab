// Which GPUs the configuration means, and how much of them.
#ifndef METS_DAEMON_APP_CONFIG_CUDA_SPECS_H_
#define METS_DAEMON_APP_CONFIG_CUDA_SPECS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/device/cuda/cuda_devices.h"
#include "daemon/app/config/config.h"

namespace mets::app {

// So much of a GPU is left outside the pool when no size is given: the contexts
// of the processes that use it (0.5 GiB each), and what their libraries take.
constexpr Bytes kCudaReserve = GiB(3);

// What this machine has (tests give another one).
struct CudaMachine {
  std::function<absl::StatusOr<std::vector<CudaDeviceInfo>>()> devices =
      ListCudaDevices;
  std::function<absl::StatusOr<Bytes>(const std::string& id)> free_bytes =
      CudaDeviceFreeBytes;
};

// Replaces the selectors of CUDA devices by UUIDs ("all" by every device that
// is visible), and fills in sizes that were not given: what is free less
// kCudaReserve. `held`: by device, what running jobs hold of an earlier
// daemon's pool; it belongs to the pool though it is not free. Does nothing
// without CUDA devices.
//
// Errors name the device and say what to do: there is no driver or no such
// device, one is named twice, or it has not so much memory free.
absl::Status SettleCudaDevices(const CudaMachine& machine,
                               const std::map<std::string, Bytes>& held,
                               Config* config);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_CUDA_SPECS_H_
