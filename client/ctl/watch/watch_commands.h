// The commands that look at what metsd decides, on metsctl's command line.
#ifndef METS_CLIENT_CTL_WATCH_WATCH_COMMANDS_H_
#define METS_CLIENT_CTL_WATCH_WATCH_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/ctl/top/top_command.h"
#include "client/ctl/watch/events_command.h"
#include "client/ctl/watch/trace_command.h"

namespace mets::ctl {

// top, events, why and trace. Must outlive the parsing.
class WatchCommands {
 public:
  explicit WatchCommands(CLI::App& app);

  // Runs what was typed; nullopt when it was none of these commands.
  std::optional<absl::Status> Run(const std::string& run_dir) const;

 private:
  void AddEvents(CLI::App& app);
  void AddWhy(CLI::App& app);
  void AddTop(CLI::App& app);
  void AddTrace(CLI::App& app);

  CLI::App* events_ = nullptr;
  EventsOptions events_options_;
  CLI::App* why_ = nullptr;
  std::string why_job_;
  bool why_json_ = false;
  CLI::App* top_ = nullptr;
  TopOptions top_options_;
  double top_seconds_ = 1;
  CLI::App* trace_ = nullptr;
  TraceOptions trace_options_;
  double trace_seconds_ = 0;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_WATCH_WATCH_COMMANDS_H_
