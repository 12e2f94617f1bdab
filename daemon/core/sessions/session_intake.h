// SessionIntake: sessions and jobs, from opening to end.
#ifndef METS_DAEMON_CORE_SESSIONS_SESSION_INTAKE_H_
#define METS_DAEMON_CORE_SESSIONS_SESSION_INTAKE_H_

#include <string>

#include "daemon/core/chunks/retirement.h"
#include "daemon/core/state.h"

namespace mets::core {

// A job's first session sets its limit, guarantee, priority and weight. What
// later sessions wish for: the smaller limit and the smaller guarantee hold (a
// session that wishes for none changes nothing); priority and weight stay. The
// guarantees of the jobs attached to a device never exceed its pool.
//
// Not thread-safe. Borrows the state and the retirement.
class SessionIntake {
 public:
  SessionIntake(State* state, Retirement* retirement)
      : state_(*state), retirement_(*retirement) {}

  void OnOpened(const SessionOpened& wish);
  void OnLost(const SessionLost& input);
  void OnResumed(const SessionResumed& input);
  void OnEnded(const SessionEnded& input);
  void OnExpected(const ExpectSession& input);
  void OnExpectedGone(const ExpectedSessionGone& input);
  void OnAttach(const AttachDevice& input);
  void OnSetJobLimit(const SetJobLimit& input);
  void OnStop();

 private:
  std::string OpenFault(const SessionOpened& input) const;
  void SetWishes(const SessionOpened& input, Job& job);
  void TakeOverRecord(SessionId record, Session& session);
  std::string AttachFault(size_t device, const Session& session) const;
  std::string GuaranteeFault(size_t device, const Job& job) const;
  absl::Status ApplyLimit(const SetJobLimit& input);
  void AnnounceLimit(const Job& job);
  void SendWelcome(const Session& session);

  State& state_;
  Retirement& retirement_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_SESSION_INTAKE_H_
