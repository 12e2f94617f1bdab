// How much memory this machine has to give.
#ifndef METS_DAEMON_APP_MACHINE_MEMORY_H_
#define METS_DAEMON_APP_MACHINE_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "daemon/app/config.h"

namespace mets::app {

// Where the kernel tells it (tests give other files).
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// Memory that can be used without swapping: MemAvailable, or what this
// process's control group (v2) leaves, if that is less.
absl::StatusOr<Bytes> AvailableMemory(const MemoryFiles& files);

// Fills in the devices and the swap space that `config` leaves open, and checks
// that all of it fits into `available` (memory of METS's own, which running
// jobs hold, included). RESOURCE_EXHAUSTED with the numbers when it does not.
absl::Status FitToMachine(Bytes available, Config* config);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_MACHINE_MEMORY_H_
