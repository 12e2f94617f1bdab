// GateKeeper: connects the TurnScheduler with the rest of the core.
#ifndef METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_
#define METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_

#include <vector>

#include "daemon/core/state.h"
#include "daemon/core/victims/reclaimer.h"

namespace mets::core {

// Tells the scheduler who takes part and what they have, sends its orders,
// and says of each session when it may compute next (Session::not_before), so
// that the buffers of those that wait are the first to leave. Where a quantum
// begins, it makes room for its job (quantum_room.h); the same once a gated
// session has begun to wait, whose held buffers may leave from then on.
// Whose gate opens gets back what it has lent (lending.h).
//
// Not thread-safe. Borrows the state and the reclaimer.
class GateKeeper {
 public:
  GateKeeper(State* state, Reclaimer* reclaimer)
      : state_(*state), reclaimer_(*reclaimer) {}

  void OnNeed(const StepNeed& input);
  void OnWanted(const TurnWanted& input);
  void OnEnded(const TurnEnded& input);
  // After each Step. `changed`: sessions or what they hold may have.
  void Advance(bool changed);
  absl::Time next_deadline() const;

 private:
  // Sessions and what they hold, as the scheduler should know them.
  void TellFacts();
  void TellVictims();
  // Notes which gated sessions wait. True when more do than before.
  bool TellHeld(size_t index);
  // Jobs that have a quantum.
  std::vector<const Job*> InQuantum(size_t index) const;

  State& state_;
  Reclaimer& reclaimer_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_
