// What sharing has cost a job from its first process to its last.
#ifndef METS_DAEMON_CORE_OPERATING_JOB_END_H_
#define METS_DAEMON_CORE_OPERATING_JOB_END_H_

#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// The job's first process is there, maybe again: what it costs counts from now
// on, as does the most that it has.
void BeginJob(const State& state, Job& job);

// Sends a JobEnded for each device that the job has used; `had`: its last
// session had memory of the device when it ended (its totals may not have come
// yet). REQUIRES: the job has no sessions any more.
void TellJobEnd(State& state, const Job& job, const std::vector<bool>& had);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_JOB_END_H_
