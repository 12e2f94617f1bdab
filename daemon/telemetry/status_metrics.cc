#include "daemon/telemetry/status_metrics.h"

#include <string>
#include <utility>

namespace mets::telemetry {
namespace {

using core::DeviceStatus;
using core::JobStatus;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// One metric: its name, its help text and how its value is read.
template <typename Row>
struct Metric {
  const char* name;
  const char* help;
  double (*value)(const Row& row);
};

double Value(Bytes bytes) { return static_cast<double>(bytes.count()); }

constexpr Metric<DeviceStatus> kDeviceGauges[] = {
    {"mets_device_pool_bytes", "Bytes that metsd may use on the device",
     [](const DeviceStatus& d) { return Value(d.pool); }},
    {"mets_device_free_bytes", "Bytes in no job's hands",
     [](const DeviceStatus& d) { return Value(d.free); }},
    {"mets_device_cached_bytes", "Bytes that jobs keep mapped for reuse",
     [](const DeviceStatus& d) { return Value(d.cached); }},
    {"mets_device_resident_bytes", "Bytes of live buffers on the device",
     [](const DeviceStatus& d) { return Value(d.resident); }},
    {"mets_device_moving_bytes", "Bytes being created, or on their way",
     [](const DeviceStatus& d) { return Value(d.moving); }},
    {"mets_device_draining_bytes", "Bytes that holders are asked to forget",
     [](const DeviceStatus& d) { return Value(d.draining); }},
    {"mets_device_orphan_bytes", "Bytes that an earlier metsd handed out",
     [](const DeviceStatus& d) { return Value(d.orphan); }},
    {"mets_device_swap_used_bytes", "Swap space of buffers that are away",
     [](const DeviceStatus& d) { return Value(d.swap_used); }},
    {"mets_device_swap_clean_bytes",
     "Swap space behind resident, unmodified buffers",
     [](const DeviceStatus& d) { return Value(d.swap_clean); }},
    {"mets_device_swap_limit_bytes", "Swap space that metsd may use",
     [](const DeviceStatus& d) { return Value(d.swap_limit); }},
    {"mets_device_sharing_mode",
     "How jobs compute: 0 all at once, 1 step by step, 2 in quanta",
     [](const DeviceStatus& d) { return static_cast<double>(d.mode); }},
};

constexpr Metric<DeviceStatus> kDeviceCounters[] = {
    {"mets_device_turns_total", "Steps that jobs had the device for in turn",
     [](const DeviceStatus& d) { return static_cast<double>(d.turns_total); }},
    {"mets_device_quanta_total", "Longer times that they had it for in turn",
     [](const DeviceStatus& d) { return static_cast<double>(d.quanta_total); }},
};

constexpr Metric<JobStatus> kJobGauges[] = {
    {"mets_job_sessions", "Connected processes of the job",
     [](const JobStatus& j) { return static_cast<double>(j.sessions); }},
    {"mets_job_resident_bytes", "Bytes of live buffers on the device",
     [](const JobStatus& j) { return Value(j.resident); }},
    {"mets_job_swapped_bytes", "Bytes of buffers that are in swap space",
     [](const JobStatus& j) { return Value(j.swapped); }},
    {"mets_job_cached_bytes", "Bytes that the job keeps mapped for reuse",
     [](const JobStatus& j) { return Value(j.cached); }},
    {"mets_job_pinned_bytes", "Resident bytes in use by running ops",
     [](const JobStatus& j) { return Value(j.pinned); }},
    {"mets_job_held_bytes", "Resident bytes whose accesses are not visible",
     [](const JobStatus& j) { return Value(j.held); }},
    {"mets_job_limit_bytes", "The most bytes the job may have; 0: no limit",
     [](const JobStatus& j) { return Value(j.limit); }},
    {"mets_job_guarantee_bytes", "Bytes not taken while the job is active",
     [](const JobStatus& j) { return Value(j.guarantee); }},
    {"mets_job_unresponsive_sessions",
     "Processes of the job that did not answer an order in time",
     [](const JobStatus& j) {
       return static_cast<double>(j.unresponsive_sessions);
     }},
    {"mets_job_gate_open", "Whether ops of the job may start",
     [](const JobStatus& j) { return j.gate_open ? 1.0 : 0.0; }},
    {"mets_waiting_requests", "Requests for memory that wait now",
     [](const JobStatus& j) { return static_cast<double>(j.waiting); }},
};

constexpr Metric<JobStatus> kJobCounters[] = {
    {"mets_evicted_bytes_total", "Bytes copied to swap space",
     [](const JobStatus& j) { return Value(j.totals.evicted); }},
    {"mets_restored_bytes_total", "Bytes copied back from swap space",
     [](const JobStatus& j) { return Value(j.totals.restored); }},
    {"mets_evictions_total", "Buffers that left, with or without a copy",
     [](const JobStatus& j) {
       return static_cast<double>(j.totals.evictions);
     }},
    {"mets_restores_total", "Buffers that came back",
     [](const JobStatus& j) { return static_cast<double>(j.totals.restores); }},
    {"mets_unobserved_accesses_total",
     "Accesses that no op announced and a fault handler served",
     [](const JobStatus& j) {
       return static_cast<double>(j.totals.unobserved_accesses);
     }},
    {"mets_waits_total", "Requests for memory that had to wait",
     [](const JobStatus& j) { return static_cast<double>(j.waits_total); }},
    {"mets_wait_seconds_total", "Seconds that requests for memory waited",
     [](const JobStatus& j) { return absl::ToDoubleSeconds(j.wait_total); }},
    {"mets_turns_total", "Turns and quanta that the job has had",
     [](const JobStatus& j) { return static_cast<double>(j.turns_total); }},
    {"mets_gate_wait_seconds_total", "Seconds that it has waited for them",
     [](const JobStatus& j) {
       return absl::ToDoubleSeconds(j.gate_wait_total);
     }},
};

std::vector<ClientMetric::Label> LabelsOf(const DeviceStatus& device) {
  return {{"device", device.id}};
}

std::vector<ClientMetric::Label> LabelsOf(const JobStatus& job) {
  return {{"device", job.device}, {"job", job.name}};
}

void SetValue(MetricType type, double value, ClientMetric* metric) {
  if (type == MetricType::Counter) {
    metric->counter.value = value;
  } else {
    metric->gauge.value = value;
  }
}

// Rows with equal labels (jobs of one name in several domains) become one
// sample: Prometheus refuses duplicates.
template <typename Row>
MetricFamily Render(const Metric<Row>& metric, MetricType type,
                    const std::vector<Row>& rows) {
  MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = type;
  std::vector<std::pair<std::vector<ClientMetric::Label>, double>> samples;
  for (const Row& row : rows) {
    std::vector<ClientMetric::Label> labels = LabelsOf(row);
    auto same = samples.begin();
    while (same != samples.end() && !(same->first == labels)) ++same;
    if (same != samples.end()) {
      same->second += metric.value(row);
    } else {
      samples.emplace_back(std::move(labels), metric.value(row));
    }
  }
  for (auto& [labels, value] : samples) {
    ClientMetric sample;
    sample.label = std::move(labels);
    SetValue(type, value, &sample);
    family.metric.push_back(std::move(sample));
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> ToMetrics(const core::Status& status) {
  std::vector<MetricFamily> families;
  for (const auto& metric : kDeviceGauges) {
    families.push_back(Render(metric, MetricType::Gauge, status.devices));
  }
  for (const auto& metric : kDeviceCounters) {
    families.push_back(Render(metric, MetricType::Counter, status.devices));
  }
  for (const auto& metric : kJobGauges) {
    families.push_back(Render(metric, MetricType::Gauge, status.jobs));
  }
  for (const auto& metric : kJobCounters) {
    families.push_back(Render(metric, MetricType::Counter, status.jobs));
  }
  return families;
}

}  // namespace mets::telemetry
