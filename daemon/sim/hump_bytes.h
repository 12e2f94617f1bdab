// HumpBytes: by how much a job exceeds a device, again and again.
#ifndef METS_DAEMON_SIM_HUMP_BYTES_H_
#define METS_DAEMON_SIM_HUMP_BYTES_H_

#include "common/base/bytes.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// For each hump of the live bytes of `program`, alone, above `memory`: its
// height, once out and once in. What most jobs move at least, and a measure to
// compare with; not a bound (docs/decisions/0004-humps-are-no-bound.md).
Bytes HumpBytes(const JobProgram& program, Bytes memory);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_HUMP_BYTES_H_
