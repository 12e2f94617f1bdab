#include "daemon/sim/sim_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"
#include "common/trace/trace_reader.h"
#include "daemon/policy/registry.h"
#include "daemon/sim/hump_bytes.h"
#include "daemon/sim/input_work.h"
#include "daemon/sim/least_restored.h"
#include "daemon/sim/least_seconds.h"
#include "daemon/sim/repeat_program.h"
#include "daemon/sim/sim_report.h"
#include "daemon/sim/simulation.h"

namespace mets::sim {
namespace {

constexpr char kReference[] = "belady";
constexpr char kFooter[] =
    "SIZE is 192MiB, 12GiB or plain bytes; a percentage is of the sum of the "
    "traces' peaks.\nJobs that compute at once share the device's time "
    "evenly: together they take at least the sum of their ops' times "
    "(device_seconds), and at least as long as the longest alone "
    "(ideal_seconds). Ops of one job run slower while others copy: 6 % at 90 "
    "GB/s, as measured with a ResNet-50 training on an H100.\nTraces come from "
    "`metsctl record JOB FILE` (docs/trace_format.md).";

struct Arguments {
  std::vector<std::string> traces;
  std::string device_memory = "100%";
  std::string policy;
  std::string residency;  // A file, or empty.
  double bus_gbps = 12;
  int moves = MachineCosts().moves;
  ProgramOptions program;
  double input_work = 0;  // Percent.
  int repeat = 1;
  double quantum = 0;
  double interference_bound = 0.02;
  bool no_plans = false;
  bool json = false;
};

bool ParsePart(const std::string& text, Bytes* part) {
  const absl::StatusOr<Bytes> bytes = ParseBytes(text);
  if (bytes.ok()) *part = *bytes;
  return bytes.ok();
}

struct Job {
  TraceArgument argument;
  JobProgram program;
};

absl::StatusOr<std::function<std::unique_ptr<core::VictimPolicy>()>>
PolicyMaker(const std::string& name) {
  if (name == kReference) return policy::MakeReferencePolicy;
  METS_RETURN_IF_ERROR(policy::MakePolicy(name).status());
  return [name] { return *policy::MakePolicy(name); };
}

absl::StatusOr<std::vector<Job>> ReadJobs(const Arguments& arguments) {
  std::vector<Job> jobs;
  for (const std::string& text : arguments.traces) {
    Job& job = jobs.emplace_back();
    METS_ASSIGN_OR_RETURN(job.argument, ParseTraceArgument(text));
    METS_ASSIGN_OR_RETURN(const trace::Trace trace,
                          trace::ReadTrace(job.argument.file));
    METS_ASSIGN_OR_RETURN(job.program,
                          MakeJobProgram(trace, arguments.program));
    METS_RETURN_IF_ERROR(
        AddInputWork(arguments.input_work / 100, &job.program));
    job.program = RepeatProgram(job.program, arguments.repeat);
  }
  return jobs;
}

void ShowProgress(const char* what, double share) {
  if (isatty(STDERR_FILENO) == 0) return;
  constexpr int kWidth = 40;
  const int full = static_cast<int>(share * kWidth);
  std::fprintf(stderr, "\r%-12s [%s%s] %3.0f %%", what,
               std::string(full, '#').c_str(),
               std::string(kWidth - full, ' ').c_str(), 100 * share);
  if (share >= 1) std::fprintf(stderr, "\n");
}

absl::Status WriteResidency(const std::string& path,
                            const std::vector<Job>& jobs,
                            const std::vector<Sample>& samples) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write ", path, ": ", strerror(errno)));
  }
  std::fputs("t_s", file);
  for (size_t i = 0; i < jobs.size(); ++i) {
    std::fprintf(file, ",%zu:%s", i + 1, jobs[i].program.name.c_str());
  }
  for (const Sample& sample : samples) {
    std::fprintf(file, "\n%.6f", sample.time);
    for (Bytes resident : sample.resident) {
      std::fprintf(file, ",%lld", static_cast<long long>(resident.count()));
    }
  }
  std::fputs("\n", file);
  if (std::fclose(file) == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cannot write ", path));
}

double DeviceSeconds(const JobProgram& program) {
  double sum = 0;
  for (const JobOp& op : program.ops) sum += op.busy;
  return sum;
}

absl::StatusOr<SimReport> Run(const Arguments& arguments,
                              const std::vector<Job>& jobs) {
  SimOptions options;
  Bytes peaks;
  double longest = 0;
  std::vector<SimJob> all;
  for (const Job& job : jobs) {
    peaks += job.program.peak;
    longest = std::max(longest, job.program.seconds);
    all.push_back({&job.program, job.argument.start, job.argument.priority,
                   job.argument.weight, job.argument.limit,
                   job.argument.guarantee});
  }
  METS_ASSIGN_OR_RETURN(options.device_memory,
                        ParseDeviceMemory(arguments.device_memory, peaks));
  METS_ASSIGN_OR_RETURN(options.policy, PolicyMaker(arguments.policy));
  options.costs.bus_bytes_per_second = arguments.bus_gbps * 1e9;
  options.costs.moves = arguments.moves;
  options.fixed_quantum = arguments.quantum;
  options.plans = !arguments.no_plans;
  options.interference_bound = arguments.interference_bound;

  SimReport report;
  report.policy = arguments.policy;
  report.device_memory = options.device_memory;
  report.bus_bytes_per_second = options.costs.bus_bytes_per_second;
  for (size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
    SimOptions alone = options;
    alone.progress = [&](double share) { ShowProgress("alone", share); };
    SimJob job = all[i];
    job.start = 0;
    METS_ASSIGN_OR_RETURN(const SimResult result, Simulate({job}, alone));
    report.serial += result.seconds;
  }
  options.progress = [&](double share) { ShowProgress("together", share); };
  constexpr double kSamples = 2000;
  if (!arguments.residency.empty()) options.sample_every = longest / kSamples;
  METS_ASSIGN_OR_RETURN(SimResult result, Simulate(all, options));
  if (!arguments.residency.empty()) {
    METS_RETURN_IF_ERROR(
        WriteResidency(arguments.residency, jobs, result.samples));
  }
  report.total = result.seconds;
  if (all.size() == 1) report.serial = result.seconds;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobProgram& program = jobs[i].program;
    report.jobs.push_back({program.name, program.seconds, program.input_seconds,
                           DeviceSeconds(program), all[i].weight,
                           HumpBytes(program, options.device_memory),
                           LeastRestored(program, options.device_memory),
                           LeastSeconds(program, options.device_memory,
                                        options.costs.bus_bytes_per_second),
                           std::move(result.jobs[i])});
  }
  return report;
}

absl::Status RunWith(const Arguments& arguments) {
  METS_ASSIGN_OR_RETURN(const std::vector<Job> jobs, ReadJobs(arguments));
  METS_ASSIGN_OR_RETURN(const SimReport report, Run(arguments, jobs));
  std::fputs((arguments.json ? ToJson(report) : ToText(report)).c_str(),
             stdout);
  return absl::OkStatus();
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  std::vector<std::string> policies = policy::PolicyNames();
  arguments->policy = policies.front();
  policies.push_back(kReference);
  app->add_option("--trace", arguments->traces,
                  "A job: FILE[,start=SECONDS][,priority=N][,weight=N]"
                  "[,limit=SIZE][,guarantee=SIZE]; several for several jobs")
      ->required()
      ->type_name("FILE");
  app->add_option("--device-memory", arguments->device_memory,
                  "The device's memory, default 100%")
      ->type_name("SIZE|PERCENT");
  app->add_option("--bus-gbps", arguments->bus_gbps,
                  "The bus, in 10^9 bytes a second each way; default 12")
      ->check(CLI::PositiveNumber);
  app->add_option("--moves", arguments->moves,
                  "Copies that a job makes for its plan at once, each way; "
                  "default 2, as on GPUs; on host devices 1")
      ->check(CLI::PositiveNumber);
  app->add_option(
         "--policy", arguments->policy,
         absl::StrCat("Whose buffers leave: ", absl::StrJoin(policies, ", "),
                      "; default ", policies.front()))
      ->type_name("NAME");
  app->add_option("--repeat", arguments->repeat,
                  "Each job does what its trace says so many times; default 1. "
                  "For traces of whole steps")
      ->check(CLI::Range(1, 1000));
  app->add_option("--input-work", arguments->input_work,
                  "This part of each job's time is work before each of its "
                  "steps that needs no device, as reading its input; default 0")
      ->check(CLI::Range(0.0, 99.0))
      ->type_name("PERCENT");
  app->add_option("--quantum", arguments->quantum,
                  "For comparison: jobs that do not fit together compute in "
                  "turns of so many seconds; default as METS decides")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  app->add_flag("--no-plans", arguments->no_plans,
                "For comparison: no plans within steps; each op waits for its "
                "own buffers");
  app->add_option("--interference-bound", arguments->interference_bound,
                  "The part of its time that a job may lose to copies for jobs "
                  "of lower priority, 1: all that they take; default 0.02")
      ->check(CLI::Range(1e-6, 1.0))
      ->type_name("PART");
  app->add_option("--time-scale", arguments->program.time_scale,
                  "Multiplies the recorded times; default 1")
      ->check(CLI::PositiveNumber);
  app->add_option("--accelerate", arguments->program.speedup,
                  "Ops take their recorded time over this, but at least their "
                  "bytes over 2.5 TB/s and 4 us: as on an accelerator")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
  app->add_option("--residency", arguments->residency,
                  "Write each job's resident bytes over time to a CSV file")
      ->type_name("FILE");
  app->add_flag("--json", arguments->json, "Print JSON");
}

}  // namespace

absl::StatusOr<TraceArgument> ParseTraceArgument(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  TraceArgument argument;
  argument.file = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> option =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const auto& [key, value] = option;
    bool ok = false;
    if (key == "start") {
      ok = absl::SimpleAtod(value, &argument.start) && argument.start >= 0;
    } else if (key == "priority") {
      ok = absl::SimpleAtoi(value, &argument.priority);
    } else if (key == "weight") {
      ok = absl::SimpleAtoi(value, &argument.weight) &&
           IsWeight(argument.weight);
    } else if (key == "limit") {
      ok = ParsePart(value, &argument.limit);
    } else if (key == "guarantee") {
      ok = ParsePart(value, &argument.guarantee);
    }
    if (ok) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--trace ", text, ": '", parts[i],
                     "' is not start=SECONDS, priority=N, weight=N (1 to ",
                     kMostWeight, "), limit=SIZE or guarantee=SIZE"));
  }
  return argument;
}

absl::StatusOr<Bytes> ParseDeviceMemory(absl::string_view text, Bytes peaks) {
  if (text.empty() || text.back() != '%') return ParseBytes(text);
  double percent = 0;
  if (!absl::SimpleAtod(text.substr(0, text.size() - 1), &percent) ||
      !(percent > 0 && percent <= 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device-memory ", text,
                     ": expected a positive percentage, as 60%, "
                     "or a size, as 12GiB"));
  }
  return Bytes(
      static_cast<int64_t>(static_cast<double>(peaks.count()) * percent / 100));
}

int RunMetsSim(int argc, const char* const* argv) {
  CLI::App app(
      "mets-sim replays recorded jobs against a device of any size, through "
      "the decisions of metsd, in virtual time.",
      "mets-sim");
  app.footer(kFooter);
  Arguments arguments;
  AddOptions(&app, &arguments);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = RunWith(arguments);
  if (status.ok()) return 0;
  std::fprintf(stderr, "mets-sim: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace mets::sim
