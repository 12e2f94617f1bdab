// OperatorIntake: what operators tell the daemon to do with devices and jobs.
#ifndef METS_DAEMON_CORE_OPERATING_OPERATOR_INTAKE_H_
#define METS_DAEMON_CORE_OPERATING_OPERATOR_INTAKE_H_

#include "absl/status/status.h"
#include "daemon/core/operating/job_emptier.h"
#include "daemon/core/state.h"

namespace mets::core {

// Drains devices, pauses, empties and ends jobs. Every command is answered by
// one CommandDone: at once, but for EvictJob. What is drained or paused is so
// until told otherwise, also by a later daemon (SettingsOf, OnRestore).
//
// Not thread-safe. Borrows the state and the emptier.
class OperatorIntake {
 public:
  OperatorIntake(State* state, JobEmptier* emptier)
      : state_(*state), emptier_(*emptier) {}

  // A drained device takes no new jobs; those that use it go on.
  void OnDrain(const DrainDevice& input);
  // No op of a paused job starts; running ones end.
  void OnPause(const PauseJob& input);
  void OnEvict(const EvictJob& input);
  // All processes of the job, also those that are not connected.
  void OnKill(const KillJob& input);
  void OnRestore(const RestoreSettings& input);

 private:
  void SetPaused(Job& job, bool paused);
  absl::Status SetDrained(const DrainDevice& input);

  State& state_;
  JobEmptier& emptier_;
};

// Of the jobs that have processes.
OperatorSettings SettingsOf(const State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_OPERATOR_INTAKE_H_
