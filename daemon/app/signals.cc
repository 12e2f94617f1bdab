#include "daemon/app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/base/stop_signals.h"

namespace mets::app {

void BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  const sigset_t set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int AwaitStopSignal() {
  const sigset_t set = StopSignals();
  int number = 0;
  while (sigwait(&set, &number) != 0) {
  }
  return number;
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace mets::app
