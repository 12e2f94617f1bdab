#include "client/ctl/metsctl.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/bench/bench_command.h"
#include "client/ctl/doctor/doctor_command.h"
#include "client/ctl/limit_size.h"
#include "client/ctl/operator_commands.h"
#include "client/ctl/positive_seconds.h"
#include "client/ctl/record_command.h"
#include "client/ctl/run_command.h"
#include "client/ctl/status_text.h"
#include "client/ctl/watch/watch_commands.h"
#include "common/base/bytes.h"
#include "common/base/errno_status.h"
#include "common/base/job_name.h"
#include "common/base/print.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

// Everything that can be typed.
struct Arguments {
  std::string run_dir;
  bool json = false;
  std::string limit_job;
  std::string limit_size;
  int priority = 0;
  RunOptions run;
  RecordOptions record;
  double record_seconds = 0;
  BenchOptions bench;
  DoctorOptions doctor;
  ReportOptions report;
};

absl::Status Show(const Arguments& arguments, Parts parts) {
  METS_ASSIGN_OR_RETURN(AdminClient client,
                        AdminClient::Connect(FindRunDir(arguments.run_dir)));
  METS_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, client.GetStatus());
  const std::string text =
      arguments.json ? ToJson(status, parts) : ToTables(status, parts);
  return Print(text);
}

absl::Status SetLimit(const Arguments& arguments) {
  METS_RETURN_IF_ERROR(ValidateJobName(arguments.limit_job));
  Bytes limit;
  if (arguments.limit_size != "none") {
    METS_ASSIGN_OR_RETURN(limit, ParseLimit(arguments.limit_size));
  }
  METS_ASSIGN_OR_RETURN(AdminClient client,
                        AdminClient::Connect(FindRunDir(arguments.run_dir)));
  return client.SetLimit(arguments.limit_job, limit);
}

CLI::App* AddShow(CLI::App& app, const char* name, const char* help,
                  Arguments* arguments) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_flag("--json", arguments->json, "Print JSON");
  return command;
}

CLI::App* AddLimit(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "limit", "Set the most memory that a job may have on each device");
  command->add_option("JOB", arguments->limit_job, "Job name")->required();
  command
      ->add_option("SIZE", arguments->limit_size,
                   "192MiB, 12GiB, plain bytes, or none")
      ->required();
  return command;
}

CLI::App* AddRun(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a program as a job: metsctl run [OPTIONS] -- COMMAND...");
  RunOptions& run = arguments->run;
  command->add_option("--job", run.job, "Job name")->type_name("NAME");
  command
      ->add_option("--limit", run.limit, "The most device memory it may have")
      ->type_name("SIZE");
  command
      ->add_option("--guarantee", run.guarantee,
                   "Device memory not taken from it while it is active")
      ->type_name("SIZE");
  command
      ->add_option("--priority", arguments->priority,
                   "Higher goes first; default 0")
      ->type_name("N");
  command
      ->add_option("--weight", run.weight,
                   "Its share of the device time among jobs of its priority; "
                   "default 1")
      ->type_name("N");
  command
      ->add_option("--wait", run.wait,
                   "How long it waits for memory: a duration, forever or fail")
      ->type_name("DURATION");
  command->add_option("COMMAND", run.command, "The program and its arguments")
      ->required();
  command->positionals_at_end();
  return command;
}

CLI::App* AddRecord(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "record", "Write the trace of a live job to a file, until Ctrl-C");
  RecordOptions& record = arguments->record;
  command->add_option("JOB", record.job, "Job name")->required();
  command
      ->add_option("FILE", record.file,
                   "The file; compressed if it ends in .xz")
      ->required();
  command
      ->add_option("--seconds", arguments->record_seconds,
                   "Stop after this time")
      ->check(PositiveSeconds())
      ->type_name("N");
  command
      ->add_option("--device", record.device,
                   "The device, if the job uses several")
      ->type_name("ID");
  return command;
}

CLI::App* AddBench(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measure copies, allocations and hand-overs on an idle device");
  command
      ->add_option("--device", arguments->bench.device,
                   "The device; default: the first")
      ->type_name("ID");
  command
      ->add_option(
          "--move", arguments->bench.move,
          "What a hand-over moves each way; default 8GiB, or what pool "
          "and swap space allow")
      ->type_name("SIZE");
  command->add_flag("--json", arguments->bench.json, "Print JSON");
  return command;
}

CLI::App* AddDoctor(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Look for what is wrong, and say what to do about it");
  command
      ->add_option("--python", arguments->doctor.python,
                   "The jobs' Python; default python3")
      ->type_name("PROGRAM");
  command->add_flag("--json", arguments->doctor.json, "Print JSON");
  return command;
}

CLI::App* AddReport(CLI::App& app, Arguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "report", "Pack what whoever is to help needs to know");
  ReportOptions& report = arguments->report;
  command->add_option("--out", report.out, "The archive (.tar.gz)")
      ->type_name("FILE");
  command
      ->add_option("--config", report.config,
                   "metsd's configuration; default: the one installed")
      ->type_name("FILE");
  command->add_option("--python", report.python, "As for doctor")
      ->type_name("PROGRAM");
  return command;
}

// What was typed wrong, and where help is.
absl::Status Misunderstood(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const std::vector<std::string> rest = app.remaining();
  if (!commands.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(error.what(), " (metsctl ", commands[0]->get_name(),
                     " --help says what there is)"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      rest.empty() ? "a command is needed"
                   : absl::StrCat("there is no command '", rest[0], "'"),
      " (metsctl --help lists the commands)"));
}

int Report(absl::Status status) {
  // What buffers may still hold back shows here: a full disk.
  if (status.ok() && std::fflush(stdout) != 0) {
    status = ErrnoToStatus(errno, "write the output");
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "metsctl: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace

int RunMetsctl(int argc, const char* const* argv) {
  CLI::App app("metsctl shows and steers what metsd does.", "metsctl");
  app.set_version_flag("--version", absl::StrCat("metsctl ", METS_VERSION));
  app.footer(
      "The exit status is 0 when what was asked for is done, 2 when the "
      "command line is wrong, and 1 for all else; that of `run` is the "
      "program's.");
  app.require_subcommand(1);
  Arguments arguments;
  app.add_option("--run-dir", arguments.run_dir,
                 "Directory of the daemon's sockets. Default: METS_RUN_DIR, "
                 "$XDG_RUNTIME_DIR/mets for an ordinary user, /run/mets")
      ->type_name("DIR");
  CLI::App* status =
      AddShow(app, "status", "Show the daemon, devices and jobs", &arguments);
  CLI::App* devices = AddShow(app, "devices", "Show the devices", &arguments);
  CLI::App* jobs = AddShow(app, "jobs", "Show the jobs", &arguments);
  CLI::App* shares = AddShow(
      app, "shares", "Show memory that processes share read-only", &arguments);
  CLI::App* limit = AddLimit(app, &arguments);
  CLI::App* run = AddRun(app, &arguments);
  CLI::App* record = AddRecord(app, &arguments);
  CLI::App* bench = AddBench(app, &arguments);
  OperatorCommands operate(app);
  CLI::App* doctor = AddDoctor(app, &arguments);
  CLI::App* report = AddReport(app, &arguments);
  const WatchCommands watch(app);
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream answer;  // To --help, --version.
    if (app.exit(error, answer, answer) == 0)
      return Report(Print(answer.str()));
    return Report(Misunderstood(app, error));
  }
  if (status->parsed()) {
    return Report(Show(arguments, {true, true, true, true}));
  }
  if (devices->parsed()) return Report(Show(arguments, {true, false, false}));
  if (jobs->parsed()) return Report(Show(arguments, {false, true, false}));
  if (shares->parsed()) {
    return Report(Show(arguments, {false, false, false, true}));
  }
  if (limit->parsed()) return Report(SetLimit(arguments));
  if (doctor->parsed()) {
    return Report(
        DoctorCommand(arguments.doctor, FindRunDir(arguments.run_dir)));
  }
  if (report->parsed()) {
    return Report(
        ReportCommand(arguments.report, FindRunDir(arguments.run_dir)));
  }
  if (operate.parsed()) {
    return Report(operate.Run(FindRunDir(arguments.run_dir)));
  }
  if (bench->parsed()) {
    return Report(BenchCommand(arguments.bench, FindRunDir(arguments.run_dir)));
  }
  if (record->parsed()) {
    if (arguments.record_seconds > 0) {
      arguments.record.limit = absl::Seconds(arguments.record_seconds);
    }
    return Report(
        RecordCommand(arguments.record, FindRunDir(arguments.run_dir)));
  }
  if (const auto done = watch.Run(FindRunDir(arguments.run_dir))) {
    return Report(*done);
  }
  if (run->count("--priority") > 0) {
    arguments.run.priority = arguments.priority;
  }
  return Report(RunCommand(arguments.run, FindRunDir(arguments.run_dir)));
}

}  // namespace mets::ctl
