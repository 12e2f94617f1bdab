#include "client/ctl/watch/watch_commands.h"

#include "client/ctl/positive_seconds.h"
#include "client/ctl/watch/why_command.h"

namespace mets::ctl {

WatchCommands::WatchCommands(CLI::App& app) {
  AddEvents(app);
  AddWhy(app);
  AddTop(app);
  AddTrace(app);
}

void WatchCommands::AddEvents(CLI::App& app) {
  events_ = app.add_subcommand("events", "Show what metsd has decided");
  EventsOptions& options = events_options_;
  events_->add_option("--job", options.job, "Only of this job, or for it")
      ->type_name("NAME");
  events_->add_option("--newest", options.newest, "So many; default 50")
      ->type_name("N");
  events_->add_flag("--follow", options.follow,
                    "Go on with those that come, until Ctrl-C");
  events_->add_flag("--details", options.details, "Turns and steps as well");
  events_->add_flag("--json", options.json, "Print a JSON object a line");
}

void WatchCommands::AddWhy(CLI::App& app) {
  why_ = app.add_subcommand(
      "why", "Say why a job waits, why it was evicted, and what would help");
  why_->add_option("JOB", why_job_, "Job name")->required();
  why_->add_flag("--json", why_json_, "Print JSON");
}

void WatchCommands::AddTop(CLI::App& app) {
  top_ = app.add_subcommand("top", "Show devices and jobs, live");
  top_->add_option("--seconds", top_seconds_,
                   "How often the numbers are new; default 1")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("N");
  top_->add_option("--filter", top_options_.filter,
                   "Only jobs whose name, device or state contains this")
      ->type_name("TEXT");
  top_->add_flag("--once", top_options_.once,
                 "Print it once, as where the output is no terminal");
}

void WatchCommands::AddTrace(CLI::App& app) {
  trace_ = app.add_subcommand(
      "trace",
      "Write a job's steps, turns, waits and moves for Perfetto's viewer, "
      "until Ctrl-C or its end");
  trace_->add_option("JOB", trace_options_.job, "Job name")->required();
  trace_->add_option("FILE", trace_options_.file, "The file (JSON)")
      ->required();
  trace_->add_option("--seconds", trace_seconds_, "Stop after this time")
      ->check(PositiveSeconds())
      ->type_name("N");
  trace_->add_flag("--past", trace_options_.past,
                   "Begin with what metsd remembers");
}

std::optional<absl::Status> WatchCommands::Run(
    const std::string& run_dir) const {
  if (events_->parsed()) return EventsCommand(events_options_, run_dir);
  if (why_->parsed()) return WhyCommand(why_job_, why_json_, run_dir);
  if (top_->parsed()) {
    TopOptions options = top_options_;
    options.period = absl::Seconds(top_seconds_);
    return TopCommand(options, run_dir);
  }
  if (trace_->parsed()) {
    TraceOptions options = trace_options_;
    if (trace_seconds_ > 0) options.limit = absl::Seconds(trace_seconds_);
    return TraceCommand(options, run_dir);
  }
  return std::nullopt;
}

}  // namespace mets::ctl
