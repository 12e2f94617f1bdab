#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "daemon/core/costs/totals.h"
#include "daemon/telemetry/job_metrics.h"

namespace mets::telemetry {
namespace {

using core::JobStatus;

// Without a limit, one of them has none.
Bytes MergeLimits(Bytes a, Bytes b) {
  return a.is_zero() || b.is_zero() ? Bytes() : a + b;
}

void AddAmounts(const JobStatus& from, JobStatus* to) {
  to->sessions += from.sessions;
  to->unresponsive_sessions += from.unresponsive_sessions;
  to->resident += from.resident;
  to->swapped += from.swapped;
  to->pinned += from.pinned;
  to->held += from.held;
  to->cached += from.cached;
  to->limit = MergeLimits(to->limit, from.limit);
  to->guarantee += from.guarantee;
  to->waiting += from.waiting;
}

void AddCounters(const JobStatus& from, JobStatus* to) {
  core::AddTotals(from.totals, &to->totals);
  to->waits_total += from.waits_total;
  to->wait_total += from.wait_total;
  to->wait_times.Add(from.wait_times);
  to->turns_total += from.turns_total;
  to->gate_wait_total += from.gate_wait_total;
  for (size_t i = 0; i < core::kFailures; ++i) {
    to->failures[i] += from.failures[i];
  }
}

void Merge(const JobStatus& from, JobStatus* to) {
  AddAmounts(from, to);
  AddCounters(from, to);
  to->gate_open &= from.gate_open;
  to->paused |= from.paused;
  to->waiting_for = std::max(to->waiting_for, from.waiting_for);
  if (from.slowdown <= to->slowdown) return;
  to->slowdown = from.slowdown;
  to->recent_step = from.recent_step;
  to->uncontended_step = from.uncontended_step;
}

}  // namespace

std::vector<JobStatus> MergeJobs(const std::vector<JobStatus>& jobs) {
  std::vector<JobStatus> rows;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const JobStatus& job : jobs) {
    const auto [place, first] =
        places.try_emplace({job.device, job.name}, rows.size());
    if (first) {
      rows.push_back(job);
    } else {
      Merge(job, &rows[place->second]);
    }
  }
  return rows;
}

}  // namespace mets::telemetry
