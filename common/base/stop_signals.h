// The signals that ask a program to stop.
#ifndef METS_COMMON_BASE_STOP_SIGNALS_H_
#define METS_COMMON_BASE_STOP_SIGNALS_H_

#include <signal.h>

namespace mets {

inline sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace mets

#endif  // METS_COMMON_BASE_STOP_SIGNALS_H_
