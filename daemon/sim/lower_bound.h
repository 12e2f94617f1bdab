// LeastMoved: what no policy can do without.
#ifndef METS_DAEMON_SIM_LOWER_BOUND_H_
#define METS_DAEMON_SIM_LOWER_BOUND_H_

#include "common/base/bytes.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// The bytes that must move for `program` to run alone in `memory`: for each
// hump of its live bytes above that, its height, once out and once in.
Bytes LeastMoved(const JobProgram& program, Bytes memory);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_LOWER_BOUND_H_
