// Moves for lower classes, held back while a higher class computes.
#ifndef METS_DAEMON_CORE_MOVES_PACED_MOVES_H_
#define METS_DAEMON_CORE_MOVES_PACED_MOVES_H_

#include "absl/time/time.h"
#include "daemon/core/state.h"

namespace mets::core {

// Whose moves these are: an eviction is made for the job that needs the memory,
// a restore for the job whose buffer comes back. Moves for the highest class
// that computes are not held back, nor is anything while none does.
//
// A client says how much it has moved (Totals); what it evicts by an order for
// another class counts for that class, as soon as it is ordered.

// Bytes will be copied out of `session`'s buffers for `requester`.
void NoteOrderedMoves(State& state, size_t device, Session& session,
                      const Job& requester, Bytes bytes);
// The session's totals have become `totals`.
void NoteTotals(State& state, size_t device, Session& session,
                const Totals& totals);
// The session has said where it is in its step.
void NoteStep(State& state, size_t device, const Session& session,
              const StepProgress& progress);

// Nobody but the session computes on the device.
bool ComputesAlone(const State& state, size_t device, const Session& session);

// When orders for the class may go on: InfinitePast when at once.
absl::Time MovesFrom(const State& state, size_t device, int priority);
// How many bytes a second may move for the class.
double MovesPerSecond(const State& state, size_t device, int priority);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_MOVES_PACED_MOVES_H_
