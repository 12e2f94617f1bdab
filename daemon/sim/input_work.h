// InputWork: a job whose steps begin with work that needs no device.
#ifndef METS_DAEMON_SIM_INPUT_WORK_H_
#define METS_DAEMON_SIM_INPUT_WORK_H_

#include "absl/status/status.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// Puts work of the host alone, as of an input pipeline that does not run ahead,
// before each step of `program`, so that it takes `share` of the job's time.
// StepDetector says how many steps there are; each begins where the least lives
// about a step apart, with an op that uses what lives already. What the
// recorded job waited for between its ops stays.
//
// INVALID_ARGUMENT, with the program as it was, when none of its repetitions
// has a step. For traces of whole steps. REQUIRES: 0 <= share < 1.
absl::Status AddInputWork(double share, JobProgram* program);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_INPUT_WORK_H_
