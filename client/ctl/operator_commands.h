// `metsctl drain`, `undrain`, `pause`, `resume`, `evict` and `kill`.
#ifndef METS_CLIENT_CTL_OPERATOR_COMMANDS_H_
#define METS_CLIENT_CTL_OPERATOR_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/admin_client.h"

namespace mets::ctl {

// Prints what has left and what stays.
absl::Status EvictCommand(AdminClient& client, const std::string& job);

// Asks the job's processes to end, and returns once they have: after `grace`
// they are killed. DEADLINE_EXCEEDED when some live on all the same.
absl::Status KillCommand(AdminClient& client, const std::string& job,
                         absl::Duration grace);

// The commands of one command line. Not to be moved: CLI11 keeps pointers.
class OperatorCommands {
 public:
  // Adds them to `app`, which is borrowed.
  explicit OperatorCommands(CLI::App& app);
  OperatorCommands(const OperatorCommands&) = delete;
  OperatorCommands& operator=(const OperatorCommands&) = delete;

  // One of them was typed.
  bool parsed() const;
  // Runs it. REQUIRES: parsed().
  absl::Status Run(const std::string& run_dir);

 private:
  using Action = std::function<absl::Status(AdminClient&)>;

  void Add(CLI::App& app, const char* name, const char* help,
           const char* operand, Action action);

  struct Command {
    CLI::App* app;
    Action action;
  };
  std::vector<Command> commands_;
  std::string operand_;  // The job or device.
  double grace_seconds_ = 10;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_OPERATOR_COMMANDS_H_
