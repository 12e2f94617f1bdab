// Why: what keeps a job from computing, and what would help.
#ifndef METS_DAEMON_CORE_REPORTS_WHY_H_
#define METS_DAEMON_CORE_REPORTS_WHY_H_

#include <string>
#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// What the job does on the device at this moment.
JobPhase PhaseOf(const State& state, const Job& job, size_t device);

// One answer for each job of the name and device that it uses.
std::vector<WhyAnswer> WhyOf(const State& state, const std::string& job);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_REPORTS_WHY_H_
