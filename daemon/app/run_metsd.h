// The life of the metsd process.
#ifndef METS_DAEMON_APP_RUN_METSD_H_
#define METS_DAEMON_APP_RUN_METSD_H_

namespace mets::app {

// Reads the command line, serves until a signal comes, and returns the exit
// status: 0 after a clean stop, 2 for a wrong command line or configuration, 1
// when the daemon cannot start.
int RunMetsd(int argc, const char* const* argv);

}  // namespace mets::app

#endif  // METS_DAEMON_APP_RUN_METSD_H_
