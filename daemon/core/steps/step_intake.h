// StepIntake: what sessions say about their training steps.
#ifndef METS_DAEMON_CORE_STEPS_STEP_INTAKE_H_
#define METS_DAEMON_CORE_STEPS_STEP_INTAKE_H_

#include "daemon/core/state.h"

namespace mets::core {

// Books steps, and when their buffers are used next. What cannot be true
// refuses the session. Not thread-safe. Borrows the state.
class StepIntake {
 public:
  explicit StepIntake(State* state) : state_(*state) {}

  void OnSeen(const StepSeen& input);
  void OnProgress(const StepProgress& input);
  void OnNeed(const StepNeed& input);

 private:
  // Null when what it says does not count.
  Session* Find(SessionId id, const std::string& device, size_t* index);
  void RefreshNextUses(Session& session, size_t index);

  State& state_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STEPS_STEP_INTAKE_H_
