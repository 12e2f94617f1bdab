#include "daemon/core/events/notes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::core {
namespace {

void NoteBurst(State& state, const Session& session, size_t device,
               EventKind kind, MoveBurst* burst) {
  const absl::Time last = session.holdings[device].reported;
  if (!burst->EndReport(state.now,
                        last == absl::InfinitePast() ? state.now : last)) {
    return;
  }
  Event event = JobEvent(state, kind, *session.job, device);
  event.cause = EvictCause::kPlan;
  event.bytes = event.copied = burst->bytes;
  event.count = burst->buffers;
  event.took = burst->end - burst->begin;
  event.time = burst->end;
  *burst = MoveBurst();
  state.Note(std::move(event));
}

const char* ModeText(SharingMode mode) {
  switch (mode) {
    case SharingMode::kFree:
      return "all at once: together they fit";
    case SharingMode::kTurns:
      return "step by step, one after the other: only their steps do not fit "
             "together";
    case SharingMode::kQuanta:
      return "one after the other, for a while each: together they do not fit";
  }
  return "";
}

}  // namespace

Event JobEvent(const State& state, EventKind kind, const Job& job,
               size_t device) {
  Event event;
  event.kind = kind;
  event.device = state.devices[device].config.name;
  event.job = job.name;
  return event;
}

void NoteDevice(State& state, EventKind kind, const Job& job, size_t device,
                const std::string& text) {
  if (!state.config.events) return;
  Event event = JobEvent(state, kind, job, device);
  event.text = text;
  state.Note(std::move(event));
}

void NoteSession(State& state, EventKind kind, const Session& session,
                 const std::string& text) {
  if (!state.config.events) return;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    const Holding& holding = session.holdings[i];
    if (!holding.attached && holding.bytes().is_zero()) continue;
    Event event = JobEvent(state, kind, *session.job, i);
    event.text = text;
    state.Note(std::move(event));
  }
}

void NoteLimit(State& state, const Job& job) {
  if (!state.config.events) return;
  Event event = JobEvent(state, EventKind::kLimitSet, job, 0);
  event.device.clear();  // It holds on each.
  event.bytes = job.limit;
  state.Note(std::move(event));
}

void NoteCommand(State& state, const std::string& device,
                 const std::string& job, const std::string& text) {
  if (!state.config.events) return;
  Event event;
  event.kind = EventKind::kCommanded;
  event.device = device;
  event.job = job;
  event.text = text;
  state.Note(std::move(event));
}

void NoteRequest(State& state, EventKind kind, const Job& job, size_t device,
                 const Request& request, const std::string& text) {
  if (!state.config.events) return;
  Event event = JobEvent(state, kind, job, device);
  event.bytes = request.total;
  event.took = state.now - request.arrived;
  event.text = text;
  state.Note(std::move(event));
}

void LeftBuffers::Add(const Order::Candidate& candidate) {
  ++count;
  bytes += candidate.size;
  if (!candidate.reused) copied += candidate.size;
}

void NoteEvicted(State& state, const Session& session, const Order& order,
                 const LeftBuffers& left) {
  if (!state.config.events || left.count == 0) return;
  Event event =
      JobEvent(state, EventKind::kEvicted, *session.job, order.device);
  event.count = left.count;
  event.bytes = left.bytes;
  event.copied = left.copied;
  event.cause = order.cause;
  event.for_job = order.for_job;
  event.took = state.now - order.issued;
  if (order.next_use != absl::InfiniteFuture()) {
    event.next_use = std::max(absl::ZeroDuration(), order.next_use - state.now);
  }
  state.Note(std::move(event));
}

void NoteMoves(State& state, Session& session, size_t device) {
  if (!state.config.events) return;
  Holding& holding = session.holdings[device];
  NoteBurst(state, session, device, EventKind::kRestored, &holding.restored);
  NoteBurst(state, session, device, EventKind::kEvicted, &holding.left_by_plan);
  holding.reported = state.now;
}

void NoteShare(State& state, EventKind kind, const Session& session,
               size_t device, const Share& share) {
  if (!state.config.events) return;
  Event event = JobEvent(state, kind, *session.job, device);
  event.bytes = share.size;
  event.text = share.name;
  state.Note(std::move(event));
}

void NoteMode(State& state, size_t device, SharingMode before) {
  const TurnScheduler& turns = state.turns;
  if (!state.config.events || turns.mode(device) == before) return;
  Event event;
  event.kind = EventKind::kModeChanged;
  event.device = state.devices[device].config.name;
  event.text = ModeText(turns.mode(device));
  if (turns.thrashed(device) && before == SharingMode::kFree) {
    absl::StrAppend(&event.text,
                    ", and spent their time on copies (thrash detected)");
  }
  state.Note(std::move(event));
}

void NoteReturned(State& state, const std::string& device, Bytes bytes) {
  if (!state.config.events || bytes.is_zero()) return;
  Event event;
  event.kind = EventKind::kReturned;
  event.device = device;
  event.bytes = bytes;
  state.Note(std::move(event));
}

void NoteTurns(State& state) {
  for (const TurnScheduler::Over& over : state.turns.TakeOver()) {
    if (!state.config.events) continue;
    Event event;
    event.kind = EventKind::kTurn;
    event.device = state.devices[over.device].config.name;
    event.job = over.job.second;
    event.took = over.had;
    event.waited = over.waited;
    state.Note(std::move(event));
  }
}

void NoteSteps(State& state, const Session& session, size_t device,
               int64_t earlier, absl::Duration since_begin) {
  const StepBook& steps = session.holdings[device].steps;
  if (!state.config.events || steps.steps() <= earlier ||
      steps.duration() <= absl::ZeroDuration()) {
    return;
  }
  Event event = JobEvent(state, EventKind::kStepped, *session.job, device);
  event.count = steps.steps() - earlier;
  event.took = steps.duration();
  event.time = state.now - since_begin;
  state.Note(std::move(event));
}

void NotePlan(State& state, const Session& session, size_t device,
              const PlanOrder& plan) {
  if (!state.config.events) return;
  const bool ends = plan.places.empty();
  Event event =
      JobEvent(state, ends ? EventKind::kPlanEnded : EventKind::kPlanned,
               *session.job, device);
  event.bytes = plan.plan.evicted;
  event.took = plan.plan.duration;
  event.count = static_cast<int64_t>(plan.plan.absences.size());
  state.Note(std::move(event));
}

}  // namespace mets::core
