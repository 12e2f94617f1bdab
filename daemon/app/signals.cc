#include "daemon/app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/stop_signals.h"

namespace mets::app {

namespace {

sigset_t FollowedSignals() {
  sigset_t set = StopSignals();
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = FollowedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int AwaitSignal(absl::Duration timeout) {
  const sigset_t set = FollowedSignals();
  const absl::Time until = SteadyNow() + timeout;
  while (true) {
    const absl::Duration left =
        std::clamp(until - SteadyNow(), absl::ZeroDuration(), absl::Hours(1));
    const timespec wait = absl::ToTimespec(left);
    const int number = sigtimedwait(&set, nullptr, &wait);
    if (number > 0) return number;
    if (SteadyNow() >= until) return 0;
  }
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace mets::app
