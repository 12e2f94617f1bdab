#include "daemon/sim/sim_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/print.h"
#include "common/base/status_macros.h"
#include "common/trace/text_file.h"
#include "common/trace/trace_reader.h"
#include "daemon/policy/registry.h"
#include "daemon/sim/hump_bytes.h"
#include "daemon/sim/input_work.h"
#include "daemon/sim/least_restored.h"
#include "daemon/sim/least_seconds.h"
#include "daemon/sim/progress_bar.h"
#include "daemon/sim/repeat_program.h"
#include "daemon/sim/sim_arguments.h"
#include "daemon/sim/sim_report.h"
#include "daemon/sim/simulation.h"

namespace mets::sim {
namespace {

struct Job {
  TraceArgument argument;
  JobProgram program;
};

// REQUIRES: there is such a policy.
std::function<std::unique_ptr<core::VictimPolicy>()> PolicyMaker(
    const std::string& name) {
  if (name == kReferencePolicy) return policy::MakeReferencePolicy;
  return [name] { return *policy::MakePolicy(name); };
}

absl::StatusOr<std::vector<Job>> ReadJobs(const Arguments& arguments) {
  std::vector<Job> jobs;
  for (const TraceArgument& argument : arguments.traces) {
    Job& job = jobs.emplace_back();
    job.argument = argument;
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

absl::Status WriteResidency(const std::vector<Job>& jobs,
                            const std::vector<Sample>& samples,
                            trace::TextFileWriter* file) {
  std::string line = "t_s";
  for (size_t i = 0; i < jobs.size(); ++i) {
    absl::StrAppend(&line, ",", i + 1, ":", jobs[i].program.name);
  }
  for (const Sample& sample : samples) {
    METS_RETURN_IF_ERROR(file->Append(absl::StrCat(line, "\n")));
    line = absl::StrFormat("%.6f", sample.time);
    for (Bytes resident : sample.resident) {
      absl::StrAppend(&line, ",", resident.count());
    }
  }
  METS_RETURN_IF_ERROR(file->Append(absl::StrCat(line, "\n")));
  return file->Close();
}

double DeviceSeconds(const JobProgram& program) {
  double sum = 0;
  for (const JobOp& op : program.ops) sum += op.busy;
  return sum;
}

SimOptions MakeOptions(const Arguments& arguments, Bytes device_memory) {
  SimOptions options;
  options.device_memory = device_memory;
  options.policy = PolicyMaker(arguments.policy);
  options.costs.bus_bytes_per_second = arguments.bus_gbps * 1e9;
  options.costs.moves = arguments.moves;
  options.fixed_quantum = arguments.quantum;
  options.plans = !arguments.no_plans;
  options.interference_bound = arguments.interference_bound;
  return options;
}

absl::StatusOr<SimResult> Show(const char* what,
                               const std::vector<SimJob>& jobs,
                               SimOptions options) {
  ProgressBar bar(what);
  options.progress = [&](double share) { bar.Show(share); };
  return Simulate(jobs, options);
}

// Of the jobs one after the other, each as if it were alone.
absl::StatusOr<double> SerialSeconds(const std::vector<SimJob>& jobs,
                                     const SimOptions& options) {
  double seconds = 0;
  for (SimJob job : jobs) {
    job.start = 0;
    METS_ASSIGN_OR_RETURN(const SimResult result,
                          Show("alone", {job}, options));
    seconds += result.seconds;
  }
  return seconds;
}

// Samples residency when `residency` is not null.
absl::StatusOr<SimReport> Run(const Arguments& arguments,
                              const std::vector<Job>& jobs,
                              trace::TextFileWriter* residency) {
  Bytes peaks;
  double latest = 0;
  std::vector<SimJob> all;
  for (const Job& job : jobs) {
    peaks += job.program.peak;
    latest = std::max(latest, job.argument.start + job.program.seconds);
    all.push_back({&job.program, job.argument.start, job.argument.priority,
                   job.argument.weight, job.argument.limit,
                   job.argument.guarantee});
  }
  METS_ASSIGN_OR_RETURN(const Bytes memory,
                        ParseDeviceMemory(arguments.device_memory, peaks));
  SimOptions options = MakeOptions(arguments, memory);
  SimReport report;
  report.policy = arguments.policy;
  report.device_memory = memory;
  report.bus_bytes_per_second = options.costs.bus_bytes_per_second;
  if (all.size() > 1) {
    METS_ASSIGN_OR_RETURN(report.serial, SerialSeconds(all, options));
  }
  constexpr double kSamples = 2000;
  if (residency != nullptr) options.sample_every = latest / kSamples;
  METS_ASSIGN_OR_RETURN(SimResult result, Show("together", all, options));
  if (residency != nullptr) {
    METS_RETURN_IF_ERROR(WriteResidency(jobs, result.samples, residency));
  }
  report.total = result.seconds;
  if (all.size() == 1) report.serial = result.seconds;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const JobProgram& program = jobs[i].program;
    report.jobs.push_back(
        {program.name, program.seconds, program.input_seconds,
         DeviceSeconds(program), all[i].weight, HumpBytes(program, memory),
         LeastRestored(program, memory),
         LeastSeconds(program, memory, options.costs.bus_bytes_per_second),
         std::move(result.jobs[i])});
  }
  return report;
}

absl::Status RunWith(const Arguments& arguments) {
  if (!arguments.help.empty()) return Print(arguments.help);
  METS_ASSIGN_OR_RETURN(const std::vector<Job> jobs, ReadJobs(arguments));
  // Before the work, so that it is not in vain.
  std::unique_ptr<trace::TextFileWriter> residency;
  if (!arguments.residency.empty()) {
    METS_ASSIGN_OR_RETURN(residency,
                          trace::TextFileWriter::Create(arguments.residency));
  }
  METS_ASSIGN_OR_RETURN(const SimReport report,
                        Run(arguments, jobs, residency.get()));
  return Print(arguments.json ? ToJson(report) : ToText(report));
}

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "mets-sim: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

}  // namespace

int RunMetsSim(int argc, const char* const* argv) {
  const absl::StatusOr<Arguments> arguments = ParseArguments(argc, argv);
  if (!arguments.ok()) return Fail(arguments.status(), 2);
  const absl::Status status = RunWith(*arguments);
  return status.ok() ? 0 : Fail(status, 1);
}

}  // namespace mets::sim
