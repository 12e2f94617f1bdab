// mets-sim's command.
#ifndef METS_DAEMON_SIM_SIM_COMMAND_H_
#define METS_DAEMON_SIM_SIM_COMMAND_H_

namespace mets::sim {

// Runs mets-sim. The exit status: 0; 2 for a wrong command line; 1 for all
// else, such as a trace that cannot be read or replayed.
int RunMetsSim(int argc, const char* const* argv);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_COMMAND_H_
