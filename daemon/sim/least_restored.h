// LeastRestored: a lower bound of what any policy brings back.
#ifndef METS_DAEMON_SIM_LEAST_RESTORED_H_
#define METS_DAEMON_SIM_LEAST_RESTORED_H_

#include "common/base/bytes.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// The fewest bytes that can be copied back to a device of `memory` bytes while
// the program runs once on it, whatever leaves when, also when parts of buffers
// could leave: while an op runs its buffers are there, and what is not there at
// a buffer's next use has to come back.
//
// Between two uses of a buffer its bytes are kept or not; where more would be
// kept than there is room for, those go whose next use is farthest. Since all
// bytes cost the same and may go one by one, nothing does better (Belady 1966;
// for intervals: Carlisle and Lloyd 1995). Bytes that are freed without another
// use need not be kept, and what leaves is as much only where it is dirty, so
// the bound is one for copies to the device.
Bytes LeastRestored(const JobProgram& program, Bytes memory);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_LEAST_RESTORED_H_
