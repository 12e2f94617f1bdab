#include "daemon/core/scheduling/gate_keeper.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/chunks/lending.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/scheduling/quantum_room.h"

namespace mets::core {
namespace {

TurnFacts FactsOf(const Session& session, size_t index) {
  const Holding& holding = session.holdings[index];
  TurnFacts facts;
  facts.session = session.id;
  facts.job = {session.domain, session.job->name};
  facts.priority = session.job->priority;
  facts.weight = session.job->weight;
  facts.gated = holding.gated;
  facts.limit = session.job->limit;
  facts.resident = holding.own() - holding.cached;
  facts.swapped = holding.buffers.swapped();
  facts.moved = holding.totals.evicted + holding.totals.restored;
  facts.last_active = session.job->last_active;
  facts.paused = session.job->paused;
  return facts;
}

}  // namespace

Device* GateKeeper::Find(SessionId session, const std::string& name) {
  if (state_.Speaker(session) == nullptr) return nullptr;
  size_t index = 0;
  return state_.FindDevice(name, &index);
}

void GateKeeper::OnNeed(const StepNeed& input) {
  Device* device = Find(input.session, input.device);
  if (device == nullptr) return;
  device->turns.OnNeed(input);
  device->turns_stir = true;
}

void GateKeeper::OnWanted(const TurnWanted& input) {
  Device* device = Find(input.session, input.device);
  if (device == nullptr) return;
  device->turns.OnWanted(state_.now, input);
  device->turns_stir = true;
}

void GateKeeper::OnEnded(const TurnEnded& input) {
  Device* device = Find(input.session, input.device);
  if (device == nullptr) return;
  device->turns.OnEnded(state_.now, input);
  device->turns_stir = true;
}

void GateKeeper::Advance(bool changed) {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    Device& device = state_.devices[i];
    if (changed || device.turns_stir ||
        device.turns.next_deadline() <= state_.now) {
      Advance(i, changed || device.turns_stir);
    }
  }
}

absl::Time GateKeeper::NotBefore(const Session& session) const {
  absl::Time next = absl::InfiniteFuture();
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    if (!session.holdings[i].attached) continue;
    next = std::min(next, state_.devices[i].turns.NotBefore(session.id));
  }
  return next == absl::InfiniteFuture() ? absl::InfinitePast() : next;
}

void GateKeeper::Advance(size_t index, bool changed) {
  Device& device = state_.devices[index];
  device.turns_stir = false;
  if (changed) {
    std::vector<TurnFacts> facts;
    for (const auto& [id, session] : state_.sessions.all()) {
      if (session.connected() && !session.awaits_snapshot &&
          session.holdings[index].attached) {
        facts.push_back(FactsOf(session, index));
      }
    }
    device.turns.SetShared(device.shares.bytes());
    device.turns.Update(state_.now, facts);
  }
  const SharingMode before = device.turns.mode();
  std::vector<GateOrder> orders = device.turns.Advance(state_.now);
  NoteMode(state_, index, before);
  NoteTurns(state_, index);
  std::vector<const Job*> opened;
  for (const TurnScheduler::Given& given : device.turns.TakeGiven()) {
    Job* job = state_.sessions.FindJob(given.job.first, given.job.second);
    if (job == nullptr) continue;
    job->devices[index].turns += given.turn;
    job->devices[index].gate_wait += given.waited;
    if (given.turn && device.turns.Find(given.job)->quantum) {
      opened.push_back(job);
    }
  }
  for (GateOrder& order : orders) {
    Session* session = state_.sessions.Find(order.session);
    if (order.open && session != nullptr) RegrantLent(state_, index, *session);
    state_.Send(std::move(order));
  }
  TellVictims();
  if (TellHeld(index)) {
    device.stir = true;
    device.search_from = absl::InfinitePast();
    opened = InQuantum(index);
  }
  for (const Job* job : opened) {
    MakeQuantumRoom(state_, reclaimer_, index, *job);
  }
}

bool GateKeeper::TellHeld(size_t index) {
  bool more = false;
  for (auto& [id, session] : state_.sessions.all()) {
    Holding& holding = session.holdings[index];
    const bool waits =
        holding.gated && state_.devices[index].turns.WaitsAtGate(id);
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
    const TurnParty* party = state_.devices[index].turns.Find(key);
    if (party != nullptr && party->in_quantum()) jobs.push_back(&job);
  }
  return jobs;
}

void GateKeeper::TellVictims() {
  for (auto& [id, session] : state_.sessions.all()) {
    const absl::Time next = NotBefore(session);
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
  absl::Time next = absl::InfiniteFuture();
  for (const Device& device : state_.devices) {
    next = std::min(next, device.turns.next_deadline());
  }
  return next;
}

}  // namespace mets::core
