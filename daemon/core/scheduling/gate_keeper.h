// GateKeeper: connects the devices' TurnSchedulers with the rest of the core.
#ifndef METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_
#define METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_

#include "daemon/core/state.h"

namespace mets::core {

// Tells the schedulers who takes part and what they have, sends their orders,
// and says of each session when it may compute next (Session::not_before), so
// that the buffers of those that wait are the first to leave.
//
// Not thread-safe. Borrows the state.
class GateKeeper {
 public:
  explicit GateKeeper(State* state) : state_(*state) {}

  void OnNeed(const StepNeed& input);
  void OnWanted(const TurnWanted& input);
  void OnEnded(const TurnEnded& input);
  // After each Step. `changed`: sessions or what they hold may have.
  void Advance(bool changed);
  absl::Time next_deadline() const;

 private:
  Device* Find(SessionId session, const std::string& device);
  void Advance(size_t index, bool changed);
  absl::Time NotBefore(const Session& session) const;

  State& state_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SCHEDULING_GATE_KEEPER_H_
