// How much memory this machine has to give.
#ifndef METS_DAEMON_APP_CONFIG_MACHINE_MEMORY_H_
#define METS_DAEMON_APP_CONFIG_MACHINE_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "daemon/app/config/config.h"

namespace mets::app {

// Where the kernel tells it (tests give other files).
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string self_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// Memory that can be used without swapping: MemAvailable, or what this
// process's control groups leave, if that is less.
absl::StatusOr<Bytes> AvailableMemory(const MemoryFiles& files);

// All memory that this process could have, used or not: MemTotal, or the least
// limit of its control groups.
absl::StatusOr<Bytes> TotalMemory(const MemoryFiles& files);

// Fills in the devices and the swap space that `config` leaves open, and checks
// that all of it fits into `memory`. RESOURCE_EXHAUSTED with the numbers when
// it does not; `which` says what memory that is ("available").
absl::Status FitToMachine(Bytes memory, absl::string_view which,
                          Config* config);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_MACHINE_MEMORY_H_
