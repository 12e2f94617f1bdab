// What metsctl doctor looks at on the machine.
#ifndef METS_CLIENT_CTL_DOCTOR_MACHINE_CHECKS_H_
#define METS_CLIENT_CTL_DOCTOR_MACHINE_CHECKS_H_

#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/doctor/finding.h"
#include "common/device/cuda/cuda_devices.h"

namespace mets::ctl {

// Where to look (tests have other machines).
struct Machine {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::function<absl::StatusOr<std::vector<CudaDeviceInfo>>()> gpus =
      ListCudaDevices;
  std::function<absl::StatusOr<std::vector<CudaProcess>>(const std::string&)>
      gpu_processes = CudaDeviceProcesses;
};

// Available memory, and what may be locked.
Finding CheckHostMemory(const Machine& machine);
// Whether the kernel gives huge pages: mapping chunks is a hundred times as
// fast with them.
Finding CheckHugePages(const Machine& machine);
// The driver and its devices.
Finding CheckDriver(const Machine& machine);
// Processes that have TensorFlow or PyTorch loaded but not METS.
Finding CheckBypassing(const Machine& machine);
// Processes on the GPUs that do not use METS. Nothing without GPUs.
Findings CheckForeign(const Machine& machine);

// Processes whose memory maps could be read.
struct Frameworks {
  std::set<int> with_mets;
  std::set<int> without_mets;
  int unreadable = 0;
};
Frameworks FindFrameworks(const Machine& machine);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_DOCTOR_MACHINE_CHECKS_H_
