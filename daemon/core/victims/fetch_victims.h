// FetchVictims: brings what a search for victims will touch into the caches.
#ifndef METS_DAEMON_CORE_VICTIMS_FETCH_VICTIMS_H_
#define METS_DAEMON_CORE_VICTIMS_FETCH_VICTIMS_H_

#include "absl/types/span.h"
#include "daemon/core/state.h"
#include "daemon/core/victims/victim_walk.h"

namespace mets::core {

// What is needed to choose among the candidates, of them, their slots, sessions
// and jobs, is read one after the other; here it is fetched at once.
void FetchVictims(const State& state, size_t device,
                  absl::Span<const VictimWalk::Candidate> candidates);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_FETCH_VICTIMS_H_
