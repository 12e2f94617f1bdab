// RepeatProgram: makes a long job of a short trace.
#ifndef METS_DAEMON_SIM_REPEAT_PROGRAM_H_
#define METS_DAEMON_SIM_REPEAT_PROGRAM_H_

#include "daemon/sim/job_program.h"

namespace mets::sim {

// The program `times` times over, as if it had gone on. What lives before the
// first op that takes time takes the place, from the second time on, of what
// lives at the end: the same buffers, else others of the same sizes. What
// remains without a partner is freed, or allocated, between two times.
//
// For traces that begin and end between the same two ops of a step.
// REQUIRES: times >= 1.
JobProgram RepeatProgram(const JobProgram& program, int times);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_REPEAT_PROGRAM_H_
