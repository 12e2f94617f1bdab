#include "daemon/core/scheduling/quantum_room.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mets::core {
namespace {

const TurnParty* PartyOf(const State& state, size_t device, const Job& job) {
  return state.turns.Find({job.domain, job.name}, device);
}

// Jobs that wait for their turn, of its class or lower ones.
std::vector<const Job*> Waiting(const State& state, size_t device,
                                const Job& opened) {
  std::vector<std::pair<absl::Time, const Job*>> waiting;
  for (const auto& [key, job] : state.sessions.jobs()) {
    const TurnParty* party = PartyOf(state, device, job);
    if (&job == &opened || party == nullptr || !party->stopped() ||
        job.priority > opened.priority) {
      continue;
    }
    waiting.emplace_back(party->ended, &job);
  }
  std::stable_sort(
      waiting.begin(), waiting.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Job*> jobs;
  for (const auto& [ended, job] : waiting) jobs.push_back(job);
  return jobs;
}

// What a session has in swap space, as far as it has not been granted memory
// for it since its last report.
Bytes Lacks(const Holding& holding) {
  const Bytes unreported = std::max(
      Bytes(), holding.own() - holding.cached - holding.buffers.resident());
  return std::max(Bytes(), holding.buffers.swapped() - unreported);
}

// What is free between buffers is not of the size that is needed next. Who
// lacks it waits until its own device has passed what it has freed.
Bytes WithSpare(Bytes need) { return need + Bytes(need.count() / 64); }

}  // namespace

void MakeQuantumRoom(State& state, Reclaimer& reclaimer, size_t device,
                     const Job& job) {
  const TurnParty* party = PartyOf(state, device, job);
  if (party == nullptr || !party->in_quantum()) return;
  Bytes has, live;
  for (SessionId id : job.sessions) {
    const Holding& holding = state.sessions.Find(id)->holdings[device];
    has += holding.own();
    live += holding.own() - holding.cached + Lacks(holding);
  }
  const ChunkLedger& ledger = state.devices[device].ledger;
  // Who announces ops swaps within a step that does not fit.
  const TurnPart& part = party->parts.at(device);
  const Bytes step = part.known() ? WithSpare(part.peak()) : Bytes();
  const bool whole = part.gated() || step <= ledger.pool();
  Bytes need = (whole ? std::max(step, live) : live) - has -
               ledger.bytes(ChunkState::kFree) - ledger.creatable() -
               state.orders.Coming(device);
  for (const Job* other : Waiting(state, device, job)) {
    if (need <= Bytes()) return;
    need -= reclaimer.Reclaim({device, need, &job, other, nullptr},
                              /*evict=*/true);
  }
}

}  // namespace mets::core
