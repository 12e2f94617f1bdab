// TakeOver: a core goes on where its predecessor ended.
#ifndef METS_DAEMON_CORE_KEPT_TAKE_OVER_H_
#define METS_DAEMON_CORE_KEPT_TAKE_OVER_H_

#include "absl/status/status.h"
#include "daemon/core/kept/kept_state.h"
#include "daemon/core/state.h"

namespace mets::core {

// Fills a new state. Sessions are there, with what they hold, as if their
// streams had just ended (those that were expected still are): each comes back
// by SessionResumed and its Snapshot, or ends. What they hold stays theirs
// until then; what is free can be used at once. Every session counts as knowing
// all chunks and extents of its domain.
//
// FAILED_PRECONDITION when `kept` does not fit the configuration or itself; the
// state is of no use then.
absl::Status TakeOver(const KeptState& kept, State* state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_KEPT_TAKE_OVER_H_
