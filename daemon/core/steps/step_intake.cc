#include "daemon/core/steps/step_intake.h"

#include <string>
#include <utility>

#include "daemon/core/events/notes.h"
#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/sessions/session_exit.h"

namespace mets::core {

Session* StepIntake::Find(SessionId id, const std::string& device,
                          size_t* index) {
  Session* session = state_.Speaker(id);
  if (session == nullptr || session->awaits_snapshot) return nullptr;
  if (state_.FindDevice(device, index) != nullptr) return session;
  RefuseSession(state_, *session, "spoke of a step on an unknown device");
  return nullptr;
}

void StepIntake::OnSeen(const StepSeen& input) {
  size_t index = 0;
  Session* session = Find(input.session, input.device, &index);
  if (session == nullptr) return;
  std::string fault = session->holdings[index].steps.Take(input);
  if (!fault.empty()) RefuseSession(state_, *session, std::move(fault));
}

void StepIntake::OnProgress(const StepProgress& input) {
  size_t index = 0;
  Session* session = Find(input.session, input.device, &index);
  if (session == nullptr) return;
  StepBook& steps = session->holdings[index].steps;
  const int64_t earlier = steps.steps();
  std::string fault = steps.Take(state_.now, input);
  if (!fault.empty()) {
    RefuseSession(state_, *session, std::move(fault));
    return;
  }
  NoteStep(state_, index, *session, input);
  NoteSteps(state_, *session, index, earlier, input.since_begin);
  session->holdings[index].plan.due = true;
  // Elsewhere nobody looks for victims soon, and reports bring them up to date.
  if (state_.devices[index].tight_until >= state_.now) {
    RefreshNextUses(*session, index);
  }
}

void StepIntake::OnNeed(const StepNeed& input) {
  size_t index = 0;
  Session* session = Find(input.session, input.device, &index);
  if (session == nullptr) return;
  session->holdings[index].steps.Take(input);
  session->holdings[index].plan.due = true;
}

void StepIntake::RefreshNextUses(Session& session, size_t index) {
  Holding& holding = session.holdings[index];
  for (auto& [id, buffer] : holding.buffers.all()) {
    if (buffer.logical == 0) continue;
    const absl::Time next = holding.steps.NextUse(buffer.logical, state_.now);
    if (next == buffer.next_use) continue;
    buffer.next_use = next;
    state_.UpdateVictim(session, index, buffer);
  }
}

}  // namespace mets::core
