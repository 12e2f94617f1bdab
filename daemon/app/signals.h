// Signals that the daemon follows.
#ifndef METS_DAEMON_APP_SIGNALS_H_
#define METS_DAEMON_APP_SIGNALS_H_

#include "absl/time/time.h"

namespace mets::app {

// Keeps SIGTERM, SIGINT and SIGHUP for AwaitSignal, in this thread and all that
// it starts later; SIGPIPE does nothing from now on.
void BlockSignals();

// Blocks until one of them comes; its number, or 0 after `timeout`.
int AwaitSignal(absl::Duration timeout);

// Lets this process have as many descriptors as it may: each chunk is one.
void RaiseDescriptorLimit();

}  // namespace mets::app

#endif  // METS_DAEMON_APP_SIGNALS_H_
