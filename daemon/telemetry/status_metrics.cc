#include "daemon/telemetry/status_metrics.h"

#include "daemon/telemetry/device_metrics.h"
#include "daemon/telemetry/job_metrics.h"
#include "daemon/telemetry/metric_table.h"

namespace mets::telemetry {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily StartTime(const DaemonFacts& facts) {
  MetricFamily family =
      MakeFamily("mets_start_time_seconds", "When metsd started, in Unix time",
                 MetricType::Gauge);
  AddSample({}, Value(facts.started - absl::UnixEpoch()), &family);
  return family;
}

MetricFamily BuildInfo(const DaemonFacts& facts) {
  MetricFamily family = MakeFamily(
      "mets_build_info", "1, for the version that runs", MetricType::Gauge);
  AddSample({{"version", facts.version}}, 1, &family);
  return family;
}

MetricFamily Sessions(const core::SessionCounts& counts) {
  MetricFamily family =
      MakeFamily("mets_sessions", "Processes that have a session, by its state",
                 MetricType::Gauge);
  const auto add = [&family](const char* state, int count) {
    AddSample({{"state", state}}, count, &family);
  };
  add("connected", counts.connected);
  add("unresponsive", counts.unresponsive);
  add("returning", counts.returning);
  add("refused", counts.refused);
  return family;
}

MetricFamily Decisions(const core::DecisionHistogram& decisions) {
  MetricFamily family =
      MakeFamily("mets_decision_seconds",
                 "How long metsd took to decide on what it was told",
                 MetricType::Histogram);
  AddHistogram({}, decisions, &family);
  return family;
}

}  // namespace

std::vector<MetricFamily> ToMetrics(const core::Status& status,
                                    const DaemonFacts& facts) {
  std::vector<MetricFamily> families = {StartTime(facts), BuildInfo(facts),
                                        Sessions(status.session_counts),
                                        Decisions(status.decisions)};
  AddDeviceMetrics(status.devices, &families);
  AddJobMetrics(MergeJobs(status.jobs), &families);
  return families;
}

}  // namespace mets::telemetry
