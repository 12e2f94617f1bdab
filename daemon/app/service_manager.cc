#include "daemon/app/service_manager.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <cinttypes>
#include <cstdint>
#include <string>
#include <utility>

namespace mets::app {

void ServiceManager::Ready() { sd_notify(0, "READY=1\nSTATUS=Serving"); }

void ServiceManager::Reloading() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t us = int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=Reloading",
             us);
}

void ServiceManager::Stopping() { sd_notify(0, "STOPPING=1\nSTATUS=Stopping"); }

void ServiceManager::Alive() { sd_notify(0, "WATCHDOG=1"); }

ServiceManager::Passed ServiceManager::TakePassed() {
  Passed passed;
  transport::PassedSockets& sockets = passed.sockets;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(/*unset_environment=*/1, &names);
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(SD_LISTEN_FDS_START + i);
    const std::string name = names[i];
    const bool admin = name == "admin";
    if (sd_is_socket_unix(socket.get(), SOCK_SEQPACKET, 1, nullptr, 0) > 0) {
      sockets.fd = std::move(socket);
    } else if (sd_is_socket_unix(socket.get(), SOCK_STREAM, 1, nullptr, 0) >
               0) {
      (admin ? sockets.admin : sockets.session) = std::move(socket);
    } else {
      passed.kept[name] = std::move(socket);
    }
  }
  for (int i = 0; i < count; ++i) free(names[i]);
  free(names);
  return passed;
}

absl::Duration ServiceManager::FindWatchdogPeriod() {
  uint64_t us = 0;
  if (sd_watchdog_enabled(0, &us) <= 0) return absl::InfiniteDuration();
  return absl::Microseconds(us) / 3;
}

}  // namespace mets::app
