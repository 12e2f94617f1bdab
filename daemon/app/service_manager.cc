#include "daemon/app/service_manager.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <cinttypes>
#include <cstdint>

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

absl::Duration ServiceManager::FindWatchdogPeriod() {
  uint64_t us = 0;
  if (sd_watchdog_enabled(0, &us) <= 0) return absl::InfiniteDuration();
  return absl::Microseconds(us) / 3;
}

}  // namespace mets::app
