// MetricsServer: the Prometheus endpoint.
#ifndef METS_DAEMON_TELEMETRY_METRICS_SERVER_H_
#define METS_DAEMON_TELEMETRY_METRICS_SERVER_H_

#include <prometheus/exposer.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/ports.h"
#include "daemon/telemetry/status_metrics.h"

namespace mets::telemetry {

// Serves http://ADDRESS/metrics from its own threads until it is destroyed.
// The source is borrowed.
class MetricsServer {
 public:
  // `address` is HOST:PORT; port 0 takes one that is free. An error names the
  // address.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, const core::StatusSource& source,
      DaemonFacts facts);

  // The address in use, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  MetricsServer() = default;

  std::string address_;
  std::shared_ptr<StatusMetrics> metrics_;  // Shared with the exposer.
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace mets::telemetry

#endif  // METS_DAEMON_TELEMETRY_METRICS_SERVER_H_
