// The core's state as Prometheus metrics.
#ifndef METS_DAEMON_TELEMETRY_STATUS_METRICS_H_
#define METS_DAEMON_TELEMETRY_STATUS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/ports.h"

namespace mets::telemetry {

// What does not change while metsd runs.
struct DaemonFacts {
  std::string version;
  absl::Time started;  // Of the wall clock.
};

// Every metric of metsd; docs/metrics.md lists them.
std::vector<prometheus::MetricFamily> ToMetrics(const core::Status& status,
                                                const DaemonFacts& facts);

// Renders the state at each scrape, so that all numbers are of one moment.
// Thread-safe; the source is borrowed.
class StatusMetrics : public prometheus::Collectable {
 public:
  StatusMetrics(const core::StatusSource& source, DaemonFacts facts)
      : source_(source), facts_(std::move(facts)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return ToMetrics(source_.GetStatus(), facts_);
  }

 private:
  const core::StatusSource& source_;
  const DaemonFacts facts_;
};

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_STATUS_METRICS_H_
