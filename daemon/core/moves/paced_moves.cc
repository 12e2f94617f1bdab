#include "daemon/core/moves/paced_moves.h"

#include <algorithm>
#include <limits>
#include <set>

#include "daemon/core/costs/report_costs.h"

namespace mets::core {
namespace {

bool Computes(const State& state, size_t device, const Session& session) {
  const Holding& holding = session.holdings[device];
  return session.connected() && holding.attached &&
         holding.resident() > Bytes() &&
         session.not_before == absl::InfinitePast() &&
         state.JobActive(*session.job);
}

// The classes above `priority` that compute.
std::set<int> ComputingAbove(const State& state, size_t device, int priority) {
  std::set<int> classes;
  for (const auto& [id, session] : state.sessions.all()) {
    if (session.job->priority > priority && Computes(state, device, session)) {
      classes.insert(session.job->priority);
    }
  }
  return classes;
}

void Charge(State& state, size_t device, int priority, Bytes bytes) {
  if (bytes <= Bytes()) return;
  for (int high : ComputingAbove(state, device, priority)) {
    state.devices[device].pacer.Charge(state.now, high, bytes);
  }
}

// What the session can have moved since it said so last: the bus carries no
// more. Reports may be late by a second.
Bytes Carried(const State& state, size_t device, Holding& holding) {
  const double each_second =
      2 * state.devices[device].config.bus_bytes_per_second;
  const absl::Duration since =
      std::min(state.now - holding.told_totals, absl::Seconds(1));
  holding.told_totals = state.now;
  holding.carried =
      std::min(each_second,
               holding.carried + each_second * absl::ToDoubleSeconds(since));
  return Bytes(static_cast<int64_t>(
      std::min(holding.carried, static_cast<double>(kLargestBuffer.count()))));
}

}  // namespace

void NoteOrderedMoves(State& state, size_t device, Session& session,
                      const Job& requester, Bytes bytes) {
  const bool own = requester.priority == session.job->priority;
  session.holdings[device].ordered_by_others = own ? Bytes() : bytes;
  if (!own) Charge(state, device, requester.priority, bytes);
}

void NoteTotals(State& state, size_t device, Session& session,
                const Totals& totals) {
  Holding& holding = session.holdings[device];
  const Totals before = holding.totals;
  NoteCosts(state, device, session, totals);
  const Bytes most = Carried(state, device, holding);
  const Bytes evicted = std::min(most, holding.totals.evicted - before.evicted);
  const Bytes restored =
      std::min(most - evicted, holding.totals.restored - before.restored);
  holding.carried -= static_cast<double>((evicted + restored).count());
  const Bytes for_others = std::min(evicted, holding.ordered_by_others);
  holding.ordered_by_others -= for_others;
  Charge(state, device, session.job->priority, evicted - for_others + restored);
}

void NoteStep(State& state, size_t device, const Session& session,
              const StepProgress& progress) {
  MovePacer::Step step;
  step.session = session.id;
  step.signature = progress.signature;
  step.steps = progress.steps;
  step.duration = progress.duration;
  step.alone = ComputesAlone(state, device, session);
  state.devices[device].pacer.OnStep(session.job->priority, step);
}

bool ComputesAlone(const State& state, size_t device, const Session& session) {
  for (const auto& [id, other] : state.sessions.all()) {
    if (id != session.id && Computes(state, device, other)) return false;
  }
  return true;
}

absl::Time MovesFrom(const State& state, size_t device, int priority) {
  const MovePacer& pacer = state.devices[device].pacer;
  absl::Time from = absl::InfinitePast();
  if (!pacer.InDebt(state.now, priority)) return from;
  for (int high : ComputingAbove(state, device, priority)) {
    from = std::max(from, pacer.FreeAt(state.now, high));
  }
  return from;
}

double MovesPerSecond(const State& state, size_t device, int priority) {
  double rate = std::numeric_limits<double>::infinity();
  for (int high : ComputingAbove(state, device, priority)) {
    rate = std::min(rate, state.devices[device].pacer.Rate(high));
  }
  return rate;
}

}  // namespace mets::core
