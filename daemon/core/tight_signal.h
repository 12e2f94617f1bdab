// TightSignal: tells sessions whether memory is short.
#ifndef METS_DAEMON_CORE_TIGHT_SIGNAL_H_
#define METS_DAEMON_CORE_TIGHT_SIGNAL_H_

#include "absl/time/time.h"
#include "daemon/core/state.h"

namespace mets::core {

// Sends LimitsChanged to every attached session whose device (or whose job, by
// its limit) has become tight, or is no longer. At the end of a Step. Does
// nothing unless state.tight_stir says that somebody may have to be told, or
// state.tight_end has come.
void SignalTight(State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_TIGHT_SIGNAL_H_
