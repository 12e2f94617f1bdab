// WaitNotices: tells sessions that wait for memory who holds it.
#ifndef METS_DAEMON_CORE_OPERATING_WAIT_NOTICES_H_
#define METS_DAEMON_CORE_OPERATING_WAIT_NOTICES_H_

#include "absl/time/time.h"
#include "daemon/core/state.h"

namespace mets::core {

// A session with a request that has waited for two seconds gets one Notice: for
// what, since when, who holds the device, what to do. No other one follows
// about what waited then, nor within a minute.
//
// Not thread-safe. Borrows the state.
class WaitNotices {
 public:
  explicit WaitNotices(State* state) : state_(*state) {}

  // After each Step.
  void Advance();
  // When the next one is due; InfiniteFuture without one.
  absl::Time next_deadline() const;

 private:
  // When the request's session is to be told of it.
  absl::Time DueAt(const Request& request) const;
  void Tell(size_t device, const Request& request, Session& session);

  State& state_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_WAIT_NOTICES_H_
