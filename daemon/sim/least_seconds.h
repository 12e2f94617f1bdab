// LeastSeconds: a lower bound of how long a job takes on a small device.
#ifndef METS_DAEMON_SIM_LEAST_SECONDS_H_
#define METS_DAEMON_SIM_LEAST_SECONDS_H_

#include "common/base/bytes.h"
#include "daemon/sim/job_program.h"

namespace mets::sim {

// The shortest time, in seconds, in which the program can run once on a device
// of `memory` bytes whose bus copies `bus_bytes_per_second` to it, whatever
// leaves and comes back when, also when parts of buffers could move.
//
// While an op runs, the device holds at most its memory. Of what lives then and
// is used before a later op begins, the rest has to be copied in between, and
// that takes the bus its time, or the ops theirs, whichever is longer. The
// bound is the longest chain of such stretches. It is at least the time of all
// ops, and more than the bus time of LeastRestored where what comes back is
// needed at once.
double LeastSeconds(const JobProgram& program, Bytes memory,
                    double bus_bytes_per_second);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_LEAST_SECONDS_H_
