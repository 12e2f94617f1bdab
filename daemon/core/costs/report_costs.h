// Accounts of what sharing costs, where something is reported or refused.
#ifndef METS_DAEMON_CORE_COSTS_REPORT_COSTS_H_
#define METS_DAEMON_CORE_COSTS_REPORT_COSTS_H_

#include "daemon/core/costs/failure.h"
#include "daemon/core/state.h"

namespace mets::core {

// The session's totals have become `totals`: raises what it holds of them, and
// counts what it has copied and how its steps went. What a process tells when
// it comes back from an earlier daemon was counted there.
void NoteCosts(State& state, size_t device, Session& session,
               const Totals& totals);

void NoteFailure(Job& job, size_t device, Failure failure);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_REPORT_COSTS_H_
