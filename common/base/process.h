// Other processes: pidfds and start times.
#ifndef METS_COMMON_BASE_PROCESS_H_
#define METS_COMMON_BASE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace mets {

// A pidfd of process `pid`: readable once the process has ended, CLOEXEC.
// NOT_FOUND when there is no such process.
absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid);

// The process that a pidfd refers to, as numbered in this pid namespace; 0
// when it lives elsewhere, -1 when it has ended. INVALID_ARGUMENT when `fd` is
// no pidfd.
absl::StatusOr<pid_t> PidOfPidfd(int fd);

// When process `pid` started, in clock ticks since boot: with the pid it names
// a process uniquely. NOT_FOUND when there is no such process.
absl::StatusOr<uint64_t> ProcessStartTime(pid_t pid);

}  // namespace mets

#endif  // METS_COMMON_BASE_PROCESS_H_
