// Denials: what a request that cannot be served is told.
#ifndef METS_DAEMON_CORE_DENIAL_TEXT_H_
#define METS_DAEMON_CORE_DENIAL_TEXT_H_

#include <string>
#include <vector>

#include "daemon/core/costs/failure.h"
#include "daemon/core/state.h"

namespace mets::core {

// "512 MiB on host0 for job 'bert'".
std::string AskedText(const State& state, size_t device, const Session& session,
                      Bytes total);

// One line for each job that holds memory of the device, largest first:
// "job 'bert': 1.2 GiB resident, 300 MiB swapped, 200 MiB pinned". At most 16
// lines; a last one counts the rest.
std::vector<std::string> HolderLines(const State& state, size_t device);

// The request's deadline has passed (or nothing can be hoped for within it):
// what was asked, how long it waited, why, the holders, what to do.
Deny DenyOverdue(const State& state, size_t device, const Request& request,
                 const Session& session);

// Why it is denied, for the counters.
Failure FailureOf(const State& state, size_t device, const Request& request,
                  const Job& job);

// A request larger than the pool, or than its job's limit.
Deny DenyLargerThanPool(const State& state, size_t device, RequestId id,
                        const Session& session, Bytes total);
Deny DenyLargerThanLimit(const State& state, size_t device, RequestId id,
                         const Session& session, Bytes total);

// Any other reason; no holders.
Deny DenyPlain(SessionId session, RequestId id, std::string reason,
               bool impossible);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_DENIAL_TEXT_H_
