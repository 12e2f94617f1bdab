// Jobs that an operator names.
#ifndef METS_DAEMON_CORE_OPERATING_RUNNING_JOBS_H_
#define METS_DAEMON_CORE_OPERATING_RUNNING_JOBS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/state.h"

namespace mets::core {

// The jobs of that name, of all domains, that have processes. NOT_FOUND, naming
// the jobs there are, when there is none.
absl::StatusOr<std::vector<Job*>> RunningJobs(State& state,
                                              const std::string& name);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_RUNNING_JOBS_H_
