// CheckState: whether every ledger balances.
#ifndef METS_DAEMON_CORE_INVARIANTS_H_
#define METS_DAEMON_CORE_INVARIANTS_H_

#include "absl/status/status.h"
#include "daemon/core/state.h"

namespace mets::core {

// OK, or INTERNAL with the first thing that does not add up: bytes of each
// device, chunks and their holders, requests and their reservations, slots and
// their buffers, orders and their candidates. Takes time in proportion to all
// of it: for tests.
absl::Status CheckState(const State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_INVARIANTS_H_
