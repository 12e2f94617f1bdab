#include "daemon/telemetry/metrics_server.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::telemetry {

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, const core::StatusSource& source,
    DaemonFacts facts) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  server->metrics_ = std::make_shared<StatusMetrics>(source, std::move(facts));
  // prometheus-cpp reports by exceptions; they end here.
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(address, 2);
    server->exposer_->RegisterCollectable(server->metrics_);
    const std::vector<int> ports = server->exposer_->GetListeningPorts();
    const std::string host = address.substr(0, address.rfind(':'));
    server->address_ =
        absl::StrCat(host, ":", ports.empty() ? 0 : ports.front());
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", address,
                     ": the address is in use or not of this machine (",
                     error.what(), "); choose another --metrics-address"));
  }
  return server;
}

}  // namespace mets::telemetry
