// Core: every decision of the daemon.
#ifndef METS_DAEMON_CORE_CORE_H_
#define METS_DAEMON_CORE_CORE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/events/event.h"
#include "daemon/core/kept/kept_state.h"
#include "daemon/core/types.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::core {

// Decides who gets memory, whose buffers leave and who waits: a deterministic
// state machine. The daemon, the tests and the simulator drive the same object.
//
// Not thread-safe. Never blocks, reads no clock, does no I/O.
//
// An input that breaks the rules (an unknown session, chunk or device, a size
// out of range) changes nothing but may refuse the session that sent it; what
// the daemon itself gets wrong is a METS_CHECK.
class Core {
 public:
  // REQUIRES: at least one device; `policy` not null.
  Core(CoreConfig config, std::unique_ptr<VictimPolicy> policy);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Takes one input at time `now` (never earlier than the last one) and
  // returns what is to be done, in order.
  std::vector<Action> Step(absl::Time now, const Input& input);

  // When the next Tick is due; InfiniteFuture when nothing waits for time.
  absl::Time next_deadline() const;

  // What was decided since the last call, for people; nothing where
  // CoreConfig::events is off. Whoever turns it on has to call this.
  std::vector<Event> TakeEvents();

  // What has changed since the last call, of what a successor would have to
  // know; nothing where CoreConfig::changes is off. Nothing of the actions of a
  // Step may be carried out before its changes are kept.
  std::vector<Change> TakeChanges();
  // All of it.
  KeptState GetKept() const;
  // Goes on where another core of this epoch has ended (see take_over.h).
  // FAILED_PRECONDITION when the state does not fit the configuration, or is
  // not sound; this core must not be used then. REQUIRES: no Step so far.
  absl::Status TakeOver(absl::Time now, const KeptState& kept);

  // A copy of the state, for people and for the state file.
  Status GetStatus() const;

  // Why the job does not compute: one answer for each device that it uses (and
  // each job of that name); none when there is no such job.
  std::vector<WhyAnswer> Why(const std::string& job) const;

  // Checks that every ledger balances (free + cached + resident + moving +
  // draining + orphans = pool on each device, slots within extents, every
  // chunk in one place). OK, or INTERNAL with the numbers that do not add up.
  absl::Status CheckInvariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CORE_H_
