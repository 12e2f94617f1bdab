// Denials: what a request that cannot be served is told.
#ifndef METS_DAEMON_CORE_REPORTS_DENIAL_TEXT_H_
#define METS_DAEMON_CORE_REPORTS_DENIAL_TEXT_H_

#include <string>

#include "daemon/core/costs/failure.h"
#include "daemon/core/state.h"

namespace mets::core {

// "512 MiB on host0 for job 'bert'".
std::string AskedText(const State& state, size_t device, const Session& session,
                      Bytes total);

// What keeps a request from being served, and what its user can do.
struct Obstruction {
  std::string why;
  std::string advice;
};
Obstruction Explain(const State& state, size_t device, const Request& request,
                    const Job& job);

// The whole report on a request that waits, or has waited in vain: what was
// asked and its `fate` ("could not be had within 60s"), why, pool and swap
// space, the holders, what was tried, what to do.
std::string RequestText(const State& state, size_t device,
                        const Request& request, const Session& session,
                        const std::string& fate);

// The request's deadline has passed (or nothing can be hoped for within it).
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

#endif  // METS_DAEMON_CORE_REPORTS_DENIAL_TEXT_H_
