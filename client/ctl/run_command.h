// `metsctl run`: starts a program as a METS job.
#ifndef METS_CLIENT_CTL_RUN_COMMAND_H_
#define METS_CLIENT_CTL_RUN_COMMAND_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mets::ctl {

// As typed; empty: not given, so that what the environment says holds.
struct RunOptions {
  std::string job;
  std::string limit;
  std::string guarantee;
  std::optional<int> priority;
  std::optional<int> weight;
  std::string wait;
  std::vector<std::string> command;
};

// What lies beside this program (../lib, ../python); empty: not there.
struct Installation {
  std::string plugin;  // TensorFlow's
  std::string python;  // Folder of the package `mets`
  std::string lib;     // Folder of libmets.so and libmets_torch.so
};
Installation FindInstallation();

// What is put into the environment of the program.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Checks every option and says what it becomes. `python_path` is what
// PYTHONPATH says so far. INVALID_ARGUMENT names the option and what is
// accepted.
absl::StatusOr<Environment> MakeEnvironment(const RunOptions& options,
                                            const std::string& run_dir,
                                            const Installation& installation,
                                            const std::string& python_path);

// Checks the options, that no other plug-in for TensorFlow is named, and that
// the daemon can be reached, then becomes the program. Returns only when that
// fails.
absl::Status RunCommand(const RunOptions& options, const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_RUN_COMMAND_H_
