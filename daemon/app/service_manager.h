// ServiceManager: systemd, if it has started this process.
#ifndef METS_DAEMON_APP_SERVICE_MANAGER_H_
#define METS_DAEMON_APP_SERVICE_MANAGER_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/base/unique_fd.h"
#include "daemon/transport/transport.h"

namespace mets::app {

// Tells the service manager where the daemon is (sd_notify(3)). Where there is
// none, nothing happens. Thread-safe.
class ServiceManager {
 public:
  void Ready();
  void Reloading();
  void Stopping();
  // It is alive: due at least every watchdog_period().
  void Alive();

  // What it passes to the daemon, once: the sockets that it has bound
  // (metsd.socket, metsd-admin.socket), and by name what it has kept for an
  // earlier daemon.
  struct Passed {
    transport::PassedSockets sockets;
    std::map<std::string, UniqueFd> kept;
  };
  static Passed TakePassed();

  // A third of the time after which a silent daemon is restarted;
  // InfiniteDuration where nobody watches.
  absl::Duration watchdog_period() const { return watchdog_period_; }

 private:
  static absl::Duration FindWatchdogPeriod();
  const absl::Duration watchdog_period_ = FindWatchdogPeriod();
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_SERVICE_MANAGER_H_
