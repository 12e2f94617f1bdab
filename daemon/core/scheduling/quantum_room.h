// Room for the job whose quantum it is.
#ifndef METS_DAEMON_CORE_SCHEDULING_QUANTUM_ROOM_H_
#define METS_DAEMON_CORE_SCHEDULING_QUANTUM_ROOM_H_

#include "daemon/core/state.h"
#include "daemon/core/victims/reclaimer.h"

namespace mets::core {

// While `job` has a quantum, has as much of the jobs that wait for their turn
// leave as it has in swap space, and as its step needs beyond what it has, if
// that can be on the device or it announces no ops: what goes out overlaps with
// what comes in, and ops find free memory. Who has had the device last comes first. It is called again
// as long as the job waits for memory, since one order names only what swap
// space has slots for: those that the job's own restores leave are filled next.
// Orders for a single request each would let the bus idle between any two.
void MakeQuantumRoom(State& state, Reclaimer& reclaimer, size_t device,
                     const Job& job);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_QUANTUM_ROOM_H_
