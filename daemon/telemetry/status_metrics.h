// The core's state as Prometheus metrics.
#ifndef METS_DAEMON_TELEMETRY_STATUS_METRICS_H_
#define METS_DAEMON_TELEMETRY_STATUS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "daemon/core/ports.h"

namespace mets::telemetry {

// Every metric of metsd; docs/metrics.md lists them.
std::vector<prometheus::MetricFamily> ToMetrics(const core::Status& status);

// Renders the state at each scrape, so that all numbers are of one moment.
// Thread-safe; the source is borrowed.
class StatusMetrics : public prometheus::Collectable {
 public:
  explicit StatusMetrics(const core::StatusSource& source) : source_(source) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return ToMetrics(source_.GetStatus());
  }

 private:
  const core::StatusSource& source_;
};

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_STATUS_METRICS_H_
