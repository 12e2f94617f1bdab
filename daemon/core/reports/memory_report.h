// MemoryReport: who has a device's memory, in words.
#ifndef METS_DAEMON_CORE_REPORTS_MEMORY_REPORT_H_
#define METS_DAEMON_CORE_REPORTS_MEMORY_REPORT_H_

#include <string>
#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// What a job has on one device.
struct JobSums {
  Bytes resident, swapped, pinned, held, cached;
  Bytes shared;  // Part of resident: it never leaves.
};
JobSums SumJob(const State& state, const Job& job, size_t device);

// One line for each job that holds memory of the device, largest first:
// "job 'bert': 1.2 GiB resident, 300 MiB swapped, 200 MiB pinned", and what
// else it has: held and cached bytes, limit, guarantee, whether it is idle. At
// most 16 lines; a last one counts the rest.
std::vector<std::string> HolderLines(const State& state, size_t device);

// "Pool of host0: 4 GiB, 100 MiB free.\nSwap space: 1 GiB of 4 GiB used, of it
// 200 MiB by clean buffers."
std::string RoomText(const State& state, size_t device);

// "Tried: asked for 200 MiB that jobs cached and 1.2 GiB of buffers." Empty
// when nothing was tried.
std::string TriedText(const Request& request);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_REPORTS_MEMORY_REPORT_H_
