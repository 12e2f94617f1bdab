// The command line of metsd.
#ifndef METS_DAEMON_APP_CONFIG_COMMAND_LINE_H_
#define METS_DAEMON_APP_CONFIG_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/app/config/config.h"

namespace mets::app {

struct CommandLine {
  Config config;
  bool check = false;  // --check-config: say whether it would do, and exit.
  // Not empty: print this and exit with success (--help, --version).
  std::string answer;
};

// Reads flags and the file that --config names; flags come first, and --device
// flags replace the file's devices. Errors name the flag or the key.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// The version of this program.
std::string VersionText();

}  // namespace mets::app

#endif  // METS_DAEMON_APP_CONFIG_COMMAND_LINE_H_
