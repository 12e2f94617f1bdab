// Metrics of devices.
#ifndef METS_DAEMON_TELEMETRY_DEVICE_METRICS_H_
#define METS_DAEMON_TELEMETRY_DEVICE_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/core/status.h"

namespace mets::telemetry {

void AddDeviceMetrics(const std::vector<core::DeviceStatus>& devices,
                      std::vector<prometheus::MetricFamily>* families);

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_DEVICE_METRICS_H_
