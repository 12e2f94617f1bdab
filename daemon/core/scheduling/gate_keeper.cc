#include "daemon/core/scheduling/gate_keeper.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/chunks/lending.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/scheduling/quantum_room.h"

namespace mets::core {
namespace {

// What a session's requests that have no answer yet mean.
struct Waiting {
  absl::Duration time;
  Bytes for_long;  // What has been waited for longer than hand-overs take.
};

absl::flat_hash_map<SessionId, Waiting> WaitingOf(const State& state,
                                                  size_t index) {
  absl::flat_hash_map<SessionId, Waiting> all;
  for (const auto& [number, request] : state.devices[index].queue.all()) {
    if (!request.waited || request.no_wait) continue;
    Waiting& waiting = all[request.session];
    waiting.time += state.now - request.arrived;
    if (request.noted) waiting.for_long += request.total;
  }
  return all;
}

TurnFacts FactsOf(absl::Time now, const Session& session, size_t index,
                  const Waiting& waiting) {
  const Holding& holding = session.holdings[index];
  TurnFacts facts;
  facts.session = session.id;
  facts.device = index;
  facts.job = {session.domain, session.job->name};
  facts.priority = session.job->priority;
  facts.weight = session.job->weight;
  facts.gated = holding.gated;
  facts.asked = holding.asked;
  facts.limit = session.job->limit;
  facts.resident = holding.own() - holding.cached;
  facts.swapped = holding.buffers.swapped();
  facts.moved = holding.totals.evicted + holding.totals.restored;
  facts.waited = holding.totals.restore_stall +
                 session.job->devices[index].wait_times.sum() + waiting.time;
  facts.last_active = session.job->last_active;
  facts.paused = session.job->paused;
  const Bytes wanted = facts.resident + waiting.for_long;
  // At its limit it waits for itself.
  if (waiting.for_long.is_zero() ||
      (!facts.limit.is_zero() && wanted > facts.limit)) {
    return facts;
  }
  facts.starves = true;
  facts.resident = wanted;
  facts.last_active = now;
  return facts;
}

}  // namespace

void GateKeeper::OnNeed(const StepNeed& input) {
  if (state_.Speaker(input.session) == nullptr) return;
  state_.turns.OnNeed(input);
  state_.turns_stir = true;
}

void GateKeeper::OnWanted(const TurnWanted& input) {
  if (state_.Speaker(input.session) == nullptr) return;
  state_.turns.OnWanted(state_.now, input);
  state_.turns_stir = true;
}

void GateKeeper::OnEnded(const TurnEnded& input) {
  if (state_.Speaker(input.session) == nullptr) return;
  state_.turns.OnEnded(state_.now, input);
  state_.turns_stir = true;
}

void GateKeeper::TellFacts() {
  std::vector<TurnFacts> facts;
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    auto waiting = WaitingOf(state_, i);
    for (const auto& [id, session] : state_.sessions.all()) {
      if (session.connected() && !session.awaits_snapshot &&
          session.holdings[i].attached) {
        facts.push_back(FactsOf(state_.now, session, i, waiting[id]));
      }
    }
    state_.turns.SetShared(i, state_.devices[i].shares.bytes());
  }
  state_.turns.Update(state_.now, facts);
}

void GateKeeper::Advance(bool changed) {
  changed |= std::exchange(state_.turns_stir, false);
  if (!changed && state_.turns.next_deadline() > state_.now) return;
  if (changed) TellFacts();
  std::vector<SharingMode> before;
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    before.push_back(state_.turns.mode(i));
  }
  std::vector<GateOrder> orders = state_.turns.Advance(state_.now);
  for (size_t i = 0; i < before.size(); ++i) NoteMode(state_, i, before[i]);
  NoteTurns(state_);
  const std::vector<TurnScheduler::Given> given = state_.turns.TakeGiven();
  for (GateOrder& order : orders) {
    Session* session = state_.sessions.Find(order.session);
    size_t index = 0;
    if (order.open && session != nullptr &&
        state_.FindDevice(order.device, &index) != nullptr) {
      RegrantLent(state_, index, *session);
    }
    state_.Send(std::move(order));
  }
  TellVictims();
  std::vector<std::vector<const Job*>> opened(state_.devices.size());
  for (const TurnScheduler::Given& turn : given) {
    Job* job = state_.sessions.FindJob(turn.job.first, turn.job.second);
    if (job == nullptr) continue;
    job->devices[turn.device].turns += turn.turn;
    job->devices[turn.device].gate_wait += turn.waited;
    if (turn.turn) opened[turn.device].push_back(job);
  }
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    Device& device = state_.devices[i];
    if (TellHeld(i)) {
      device.stir = true;
      device.search_from = absl::InfinitePast();
      opened[i] = InQuantum(i);
    }
    for (const Job* job : opened[i]) {
      MakeQuantumRoom(state_, reclaimer_, i, *job);
    }
  }
}

bool GateKeeper::TellHeld(size_t index) {
  bool more = false;
  for (auto& [id, session] : state_.sessions.all()) {
    Holding& holding = session.holdings[index];
    const bool waits = holding.gated && state_.turns.WaitsAtGate(id, index);
    if (waits == holding.waits_at_gate) continue;
    holding.waits_at_gate = waits;
    state_.RefreshVictims(id);
    more |= waits;
  }
  return more;
}

std::vector<const Job*> GateKeeper::InQuantum(size_t index) const {
  std::vector<const Job*> jobs;
  for (const auto& [key, job] : state_.sessions.jobs()) {
    const TurnParty* party = state_.turns.Find(key, index);
    if (party != nullptr && party->in_quantum()) jobs.push_back(&job);
  }
  return jobs;
}

void GateKeeper::TellVictims() {
  for (auto& [id, session] : state_.sessions.all()) {
    const absl::Time next = state_.turns.NotBefore(id);
    // Times that only come nearer are not worth the work.
    const bool closed = next != absl::InfinitePast();
    const bool was_closed = session.not_before != absl::InfinitePast();
    if (closed == was_closed && (!closed || session.not_before > state_.now)) {
      continue;
    }
    session.not_before = next;
    state_.RefreshVictims(id);
  }
}

absl::Time GateKeeper::next_deadline() const {
  return state_.turns.next_deadline();
}

}  // namespace mets::core
