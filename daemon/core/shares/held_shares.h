// Who holds shares: joining, leaving, and what a snapshot says.
#ifndef METS_DAEMON_CORE_SHARES_HELD_SHARES_H_
#define METS_DAEMON_CORE_SHARES_HELD_SHARES_H_

#include <string>
#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// A session does not hold the share any more. Its bytes are charged to another
// holder; without one, its chunks are free, and the share is gone.
void LeaveShare(State& state, size_t device, Share& share, Session& session);

// The session's process has ended.
void LeaveAllShares(State& state, Session& session);

// What is wrong with the shares that a snapshot names; "": nothing. The session
// holds those of this epoch; those of earlier ones are no more than fits, and
// have the size that others have said.
std::string SharesFault(const State& state, size_t device,
                        const Session& session, const Snapshot& whole);

// It holds exactly what the snapshot names, and what it may have published
// without knowing. Shares of earlier epochs are counted once, with the first
// session that names them.
void ReplaceShares(State& state, size_t device, Session& session,
                   const Snapshot& whole);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SHARES_HELD_SHARES_H_
