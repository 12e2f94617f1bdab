#include "daemon/core/status_report.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "daemon/core/costs/totals.h"
#include "daemon/core/operating/operator_intake.h"
#include "daemon/core/reports/why.h"

namespace mets::core {
namespace {

DeviceStatus DescribeDevice(const State& state, size_t index) {
  const Device& device = state.devices[index];
  const ChunkLedger& ledger = device.ledger;
  DeviceStatus status;
  status.id = device.config.name;
  status.kind = device.config.kind;
  status.pool = ledger.pool();
  status.free = ledger.creatable() + ledger.bytes(ChunkState::kFree);
  status.moving = ledger.bytes(ChunkState::kCreating) +
                  ledger.bytes(ChunkState::kReserved) +
                  ledger.bytes(ChunkState::kDestroying);
  status.draining =
      ledger.bytes(ChunkState::kDraining) + ledger.bytes(ChunkState::kLost);
  status.orphan = ledger.orphan();
  status.shared = device.shares.bytes();
  status.swap_used = state.swap.bytes(index, SlotState::kFull);
  status.swap_clean = state.swap.bytes(index, SlotState::kClean);
  status.swap_limit = state.swap.limit();
  status.mode = state.turns.mode(index);
  status.turns_total = state.turns.turns_total(index);
  status.quanta_total = state.turns.quanta_total(index);
  status.drained = device.drained;
  status.copied_out_bytes = device.copied_out;
  status.copied_in_bytes = device.copied_in;
  status.bus_bytes_per_second = device.config.bus_bytes_per_second;
  status.handover = device.handover.bytes();
  status.handover_time = device.handover.time(state.now);
  for (const auto& [id, session] : state.sessions.all()) {
    const Holding& holding = session.holdings[index];
    status.cached += holding.cached;
    status.resident += holding.resident();
    status.swap_used += holding.orphan_swap;
    status.pinned += std::min(holding.pinned, holding.resident());
  }
  return status;
}

void AddSession(const State& state, const Session& session, size_t index,
                JobStatus* status) {
  const Holding& holding = session.holdings[index];
  if (session.presence != Presence::kExpected) ++status->sessions;
  status->resident += holding.resident();
  status->cached += holding.cached;
  status->swapped += holding.buffers.swapped();
  status->pinned += std::min(holding.pinned, holding.resident());
  status->held += std::min(holding.buffers.held(), holding.resident());
  status->unresponsive_sessions += session.unresponsive;
  status->waiting += state.devices[index].queue.WaitingOf(session.id);
  Totals& totals = status->totals;
  const Bytes live = totals.peak_live + holding.totals.peak_live;
  const Bytes resident = totals.peak_resident + holding.totals.peak_resident;
  AddTotals(holding.totals, &totals);
  totals.peak_live = live;
  totals.peak_resident = resident;
  status->step_duration =
      std::max(status->step_duration, holding.steps.duration());
  if (holding.pace.slowdown() > status->slowdown) {
    status->slowdown = holding.pace.slowdown();
    status->recent_step = holding.pace.recent();
    status->uncontended_step = holding.pace.uncontended();
  }
}

// How long the oldest request of the job that waits has waited, or its turn.
absl::Duration WaitingFor(const State& state, const Job& job, size_t index,
                          const TurnParty* party) {
  absl::Time since = state.now;
  for (const auto& [number, request] : state.devices[index].queue.all()) {
    if (request.waited && job.sessions.count(request.session) > 0) {
      since = std::min(since, request.arrived);
    }
  }
  if (party != nullptr && party->waiting()) {
    since = std::min(since, party->wanted);
  }
  return state.now - since;
}

bool HasCounters(const JobOnDevice& job) {
  const Totals& t = job.ended;
  const auto failed = [](int64_t count) { return count > 0; };
  return job.waits > 0 || job.turns > 0 || t.evictions > 0 || t.restores > 0 ||
         t.unobserved_accesses > 0 || t.steps > 0 || !t.peak_live.is_zero() ||
         std::any_of(job.failures.begin(), job.failures.end(), failed);
}

// Peaks: what the sessions of now reached together, or an ended one alone.
JobStatus DescribeJob(const State& state, const Job& job, size_t index) {
  JobStatus status;
  status.name = job.name;
  status.device = state.devices[index].config.name;
  status.domain = job.domain;
  status.uid = job.uid;
  status.limit = job.limit;
  if (!job.sessions.empty()) status.guarantee = job.guarantee;
  status.priority = job.priority;
  status.waits_total = job.devices[index].waits;
  status.wait_times = job.devices[index].wait_times;
  status.wait_total = status.wait_times.sum();
  status.failures = job.devices[index].failures;
  status.weight = job.weight;
  status.paused = job.paused;
  status.turns_total = job.devices[index].turns;
  status.gate_wait_total = job.devices[index].gate_wait;
  const TurnParty* party = state.turns.Find({job.domain, job.name}, index);
  status.phase = PhaseOf(state, job, index);
  status.gate_open = party == nullptr ||
                     party->phase == TurnParty::Phase::kFree ||
                     party->phase == TurnParty::Phase::kOpen;
  status.waiting_for = WaitingFor(state, job, index, party);
  for (SessionId id : job.sessions) {
    AddSession(state, state.sessions.all().at(id), index, &status);
  }
  AddTotals(job.devices[index].ended, &status.totals);
  return status;
}

bool Listed(const State& state, const Job& job, size_t index) {
  return state.sessions.Attached(job, index) ||
         HasCounters(job.devices[index]) ||
         !state.sessions.JobBytes(job, index).is_zero();
}

void Count(const Session& session, SessionCounts* counts) {
  switch (session.presence) {
    case Presence::kRefused:
      ++counts->refused;
      return;
    case Presence::kExpected:
    case Presence::kLost:
      ++counts->returning;
      return;
    case Presence::kConnected:
      ++(session.awaits_snapshot ? counts->returning
         : session.unresponsive  ? counts->unresponsive
                                 : counts->connected);
  }
}

SessionHolding DescribeHolding(const State& state, const Session& session) {
  SessionHolding holding;
  holding.session = session.id;
  holding.domain = session.domain;
  holding.job = session.job->name;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    // Whoever comes back after a restart may be the first to name a share.
    const Bytes bytes = session.holdings[i].bytes() +
                        state.devices[i].shares.UnpaidBy(session.id);
    if (bytes.is_zero()) continue;
    holding.held.emplace_back(state.devices[i].config.name, bytes);
  }
  return holding;
}

ShareStatus DescribeShare(const State& state, size_t index,
                          const Share& share) {
  ShareStatus status;
  status.name = share.name;
  status.device = state.devices[index].config.name;
  status.checksum = share.checksum;
  status.bytes = share.size;
  status.sessions = static_cast<int>(share.holders.size());
  status.payer = state.sessions.all().at(share.payer).job->name;
  std::set<std::string> jobs;
  for (SessionId id : share.holders) {
    jobs.insert(state.sessions.all().at(id).job->name);
  }
  status.jobs.assign(jobs.begin(), jobs.end());
  return status;
}

}  // namespace

const char* PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kComputes:
      return "computes";
    case JobPhase::kWaitsForTurn:
      return "waits_for_turn";
    case JobPhase::kWaitsForMemory:
      return "waits_for_memory";
    case JobPhase::kIdle:
      return "idle";
    case JobPhase::kSilent:
      return "silent";
    case JobPhase::kAway:
      return "away";
    case JobPhase::kPaused:
      return "paused";
  }
  return "unknown";
}

Status BuildStatus(const State& state) {
  Status status;
  status.policy = state.policy->name();
  for (size_t i = 0; i < state.devices.size(); ++i) {
    status.devices.push_back(DescribeDevice(state, i));
    for (const auto& [key, job] : state.sessions.jobs()) {
      if (Listed(state, job, i)) {
        status.jobs.push_back(DescribeJob(state, job, i));
      }
    }
  }
  for (size_t i = 0; i < state.devices.size(); ++i) {
    for (const auto& [key, share] : state.devices[i].shares.all()) {
      status.shares.push_back(DescribeShare(state, i, share));
    }
  }
  for (const auto& [id, session] : state.sessions.all()) {
    status.sessions.push_back(DescribeHolding(state, session));
    Count(session, &status.session_counts);
  }
  status.settings = SettingsOf(state);
  return status;
}

}  // namespace mets::core
