// Signals that stop the daemon.
#ifndef METS_DAEMON_APP_SIGNALS_H_
#define METS_DAEMON_APP_SIGNALS_H_

namespace mets::app {

// Keeps SIGTERM and SIGINT for AwaitStopSignal, in this thread and all that it
// starts later; SIGPIPE and SIGHUP do nothing from now on.
void BlockSignals();

// Blocks until SIGTERM or SIGINT comes; its number.
int AwaitStopSignal();

// Lets this process have as many descriptors as it may: each chunk is one.
void RaiseDescriptorLimit();

}  // namespace mets::app

#endif  // METS_DAEMON_APP_SIGNALS_H_
