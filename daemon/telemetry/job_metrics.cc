#include "daemon/telemetry/job_metrics.h"

#include <cmath>
#include <utility>

#include "daemon/core/costs/failure.h"
#include "daemon/telemetry/metric_table.h"

namespace mets::telemetry {
namespace {

using core::JobStatus;
using prometheus::MetricFamily;
using prometheus::MetricType;

Labels LabelsOf(const JobStatus& job) {
  return {{"device", job.device}, {"job", job.name}};
}

double Count(int64_t count) { return static_cast<double>(count); }

// What is mostly zero is shown only where it is not.
double NonZero(int64_t count) { return count == 0 ? kNoSample : Count(count); }

// Zero: there is none.
double Wish(Bytes bytes) { return bytes.is_zero() ? kNoSample : Value(bytes); }

constexpr Metric<JobStatus> kGauges[] = {
    {"mets_job_sessions", "Connected processes of the job", kGauge,
     [](const JobStatus& j) { return Count(j.sessions); }},
    {"mets_job_unresponsive_sessions",
     "Processes of the job that did not answer an order in time", kGauge,
     [](const JobStatus& j) { return NonZero(j.unresponsive_sessions); }},
    {"mets_job_resident_bytes", "Bytes of live buffers on the device", kGauge,
     [](const JobStatus& j) { return Value(j.resident); }},
    {"mets_job_swapped_bytes", "Bytes of buffers that are in swap space",
     kGauge, [](const JobStatus& j) { return Value(j.swapped); }},
    {"mets_job_cached_bytes", "Bytes that the job keeps mapped for reuse",
     kGauge, [](const JobStatus& j) { return Value(j.cached); }},
    {"mets_job_pinned_bytes", "Resident bytes in use by running ops", kGauge,
     [](const JobStatus& j) { return Value(j.pinned); }},
    {"mets_job_held_bytes", "Resident bytes whose accesses are not visible",
     kGauge, [](const JobStatus& j) { return Value(j.held); }},
    {"mets_job_limit_bytes", "The most bytes the job may have", kGauge,
     [](const JobStatus& j) { return Wish(j.limit); }},
    {"mets_job_guarantee_bytes", "Bytes not taken while the job is active",
     kGauge, [](const JobStatus& j) { return Wish(j.guarantee); }},
    {"mets_job_gate_open", "Whether ops of the job may start", kGauge,
     [](const JobStatus& j) { return j.gate_open ? 1.0 : 0.0; }},
    {"mets_job_paused", "1 while an operator has paused the job", kGauge,
     [](const JobStatus& j) { return NonZero(j.paused); }},
    {"mets_job_slowdown",
     "How many times as long its steps take as uncontended ones", kGauge,
     [](const JobStatus& j) {
       return j.slowdown > 0 ? std::round(j.slowdown * 1e3) / 1e3 : kNoSample;
     }},
    {"mets_waiting_requests", "Requests for memory that wait now", kGauge,
     [](const JobStatus& j) { return Count(j.waiting); }},
    {"mets_waiting_seconds",
     "Seconds that the oldest of them, or the job for its turn, has waited",
     kGauge, [](const JobStatus& j) { return Value(j.waiting_for); }},
};

constexpr Metric<JobStatus> kCounters[] = {
    {"mets_evicted_bytes_total", "Bytes copied to swap space", kCounter,
     [](const JobStatus& j) { return Value(j.totals.evicted); }},
    {"mets_restored_bytes_total", "Bytes copied back from swap space", kCounter,
     [](const JobStatus& j) { return Value(j.totals.restored); }},
    {"mets_evictions_total", "Buffers that left, with or without a copy",
     kCounter, [](const JobStatus& j) { return Count(j.totals.evictions); }},
    {"mets_clean_evictions_total", "Buffers that left without a copy", kCounter,
     [](const JobStatus& j) { return Count(j.totals.clean_evictions); }},
    {"mets_restores_total", "Buffers that came back", kCounter,
     [](const JobStatus& j) { return Count(j.totals.restores); }},
    {"mets_restore_stall_seconds_total",
     "Seconds in which ops waited for buffers to come back", kCounter,
     [](const JobStatus& j) { return Value(j.totals.restore_stall); }},
    {"mets_unobserved_accesses_total",
     "Accesses that no op announced and a fault handler served", kCounter,
     [](const JobStatus& j) { return Count(j.totals.unobserved_accesses); }},
    {"mets_gate_wait_seconds_total",
     "Seconds that the job has waited for turns and quanta", kCounter,
     [](const JobStatus& j) { return Value(j.gate_wait_total); }},
    {"mets_steps_total", "Steps that have ended", kCounter,
     [](const JobStatus& j) { return Count(j.totals.steps); }},
    {"mets_step_seconds_total", "Seconds that they took, waits included",
     kCounter, [](const JobStatus& j) { return Value(j.totals.step_time); }},
};

// Only jobs that have waited: of all that is shown this is the longest.
MetricFamily Waits(const std::vector<JobStatus>& jobs) {
  MetricFamily family = MakeFamily(
      "mets_wait_seconds", "How long requests for memory waited that had to",
      MetricType::Histogram);
  for (const JobStatus& job : jobs) {
    if (job.wait_times.count() == 0) continue;
    AddHistogram(LabelsOf(job), job.wait_times, &family);
  }
  return family;
}

// Only reasons that have occurred: ten series a job would be none the wiser.
MetricFamily Failures(const std::vector<JobStatus>& jobs) {
  MetricFamily family =
      MakeFamily("mets_failures_total",
                 "What the job asked for and did not get, by reason", kCounter);
  for (const JobStatus& job : jobs) {
    for (size_t i = 0; i < core::kFailures; ++i) {
      if (job.failures[i] == 0) continue;
      Labels labels = LabelsOf(job);
      labels.push_back({"reason", core::NameOf(static_cast<core::Failure>(i))});
      AddSample(std::move(labels), Count(job.failures[i]), &family);
    }
  }
  return family;
}

}  // namespace

void AddJobMetrics(const std::vector<JobStatus>& jobs,
                   std::vector<MetricFamily>* families) {
  Render(kGauges, jobs, LabelsOf, families);
  Render(kCounters, jobs, LabelsOf, families);
  families->push_back(Waits(jobs));
  families->push_back(Failures(jobs));
}

}  // namespace mets::telemetry
