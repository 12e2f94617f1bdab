// Lending: what a process has free between its turns.
#ifndef METS_DAEMON_CORE_CHUNKS_LENDING_H_
#define METS_DAEMON_CORE_CHUNKS_LENDING_H_

#include <cstddef>
#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// Where jobs compute in turn, what one of them has allocated and freed within
// its step serves the next one, and comes back a step later. So a process lends
// it when its turn ends: to the ledger the chunks are free, but they stay
// mapped in the process, where they become usable again by one message. (Inside
// a domain, that is: who gets a chunk in another domain gets it only once it
// has been unmapped and destroyed; see Retirement.) Holding::lent has them.

// The session has been granted `chunks`: they are not lent any more.
void EndLoan(Holding& holding, std::vector<ChunkId> chunks);

// Grants the session what it has lent and nobody uses, as far as its job's
// limit allows; nothing while requests wait for memory. For when its turn
// opens.
void RegrantLent(State& state, size_t device, Session& session);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CHUNKS_LENDING_H_
