#include "daemon/telemetry/device_metrics.h"

#include <utility>

#include "daemon/telemetry/metric_table.h"

namespace mets::telemetry {
namespace {

using core::DeviceStatus;
using prometheus::MetricFamily;
using prometheus::MetricType;

Labels LabelsOf(const DeviceStatus& device) { return {{"device", device.id}}; }

constexpr Metric<DeviceStatus> kMetrics[] = {
    {"mets_device_pool_bytes", "Bytes that metsd may use on the device", kGauge,
     [](const DeviceStatus& d) { return Value(d.pool); }},
    {"mets_device_free_bytes", "Bytes in no job's hands", kGauge,
     [](const DeviceStatus& d) { return Value(d.free); }},
    {"mets_device_cached_bytes", "Bytes that jobs keep mapped for reuse",
     kGauge, [](const DeviceStatus& d) { return Value(d.cached); }},
    {"mets_device_resident_bytes", "Bytes of live buffers on the device",
     kGauge, [](const DeviceStatus& d) { return Value(d.resident); }},
    {"mets_device_pinned_bytes", "Resident bytes in use by running ops", kGauge,
     [](const DeviceStatus& d) { return Value(d.pinned); }},
    {"mets_device_moving_bytes", "Bytes being created, or on their way", kGauge,
     [](const DeviceStatus& d) { return Value(d.moving); }},
    {"mets_device_draining_bytes", "Bytes that holders are asked to forget",
     kGauge, [](const DeviceStatus& d) { return Value(d.draining); }},
    {"mets_device_orphan_bytes", "Bytes that an earlier metsd handed out",
     kGauge, [](const DeviceStatus& d) { return Value(d.orphan); }},
    {"mets_device_shared_bytes", "Resident bytes of shares, each counted once",
     kGauge, [](const DeviceStatus& d) { return Value(d.shared); }},
    {"mets_device_swap_used_bytes", "Swap space of buffers that are away",
     kGauge, [](const DeviceStatus& d) { return Value(d.swap_used); }},
    {"mets_device_swap_clean_bytes",
     "Swap space behind resident, unmodified buffers", kGauge,
     [](const DeviceStatus& d) { return Value(d.swap_clean); }},
    {"mets_device_swap_limit_bytes", "Swap space that metsd may use", kGauge,
     [](const DeviceStatus& d) { return Value(d.swap_limit); }},
    {"mets_device_bus_bytes_per_second",
     "What metsd takes the bus to carry, one way", kGauge,
     [](const DeviceStatus& d) { return d.bus_bytes_per_second; }},
    {"mets_device_sharing_mode",
     "How jobs compute: 0 all at once, 1 step by step, 2 in quanta", kGauge,
     [](const DeviceStatus& d) { return static_cast<double>(d.mode); }},
    {"mets_device_drained", "Whether the device takes no new jobs", kGauge,
     [](const DeviceStatus& d) { return d.drained ? 1.0 : 0.0; }},
    {"mets_device_turns_total", "Steps that jobs had the device for in turn",
     kCounter,
     [](const DeviceStatus& d) { return static_cast<double>(d.turns_total); }},
    {"mets_device_quanta_total", "Longer times that they had it for in turn",
     kCounter,
     [](const DeviceStatus& d) { return static_cast<double>(d.quanta_total); }},
    {"mets_device_handover_bytes_total", "Bytes passed on by evictions",
     kCounter, [](const DeviceStatus& d) { return Value(d.handover); }},
    {"mets_device_handover_seconds_total",
     "Seconds in which evictions were under way", kCounter,
     [](const DeviceStatus& d) { return Value(d.handover_time); }},
};

MetricFamily CopiedBytes(const std::vector<DeviceStatus>& devices) {
  MetricFamily family = MakeFamily(
      "mets_device_copied_bytes_total",
      "Bytes copied over the bus: out to swap space, or in from it", kCounter);
  for (const DeviceStatus& device : devices) {
    const auto add = [&](const char* direction, double bytes) {
      Labels labels = LabelsOf(device);
      labels.push_back({"direction", direction});
      AddSample(std::move(labels), bytes, &family);
    };
    add("out", device.copied_out_bytes);
    add("in", device.copied_in_bytes);
  }
  return family;
}

}  // namespace

void AddDeviceMetrics(const std::vector<DeviceStatus>& devices,
                      std::vector<MetricFamily>* families) {
  Render(kMetrics, devices, LabelsOf, families);
  families->push_back(CopiedBytes(devices));
}

}  // namespace mets::telemetry
