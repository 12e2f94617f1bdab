// TightSignal: tells sessions whether memory is short.
#ifndef METS_DAEMON_CORE_TIGHT_SIGNAL_H_
#define METS_DAEMON_CORE_TIGHT_SIGNAL_H_

#include "absl/time/time.h"
#include "daemon/core/state.h"

namespace mets::core {

// Sends LimitsChanged to every attached session whose device (or whose job, by
// its limit) has become tight, or is no longer. At the end of a Step.
void SignalTight(State& state);

// When a session is to be told that it is no longer tight; InfiniteFuture when
// none is.
absl::Time NextTightEnd(const State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_TIGHT_SIGNAL_H_
