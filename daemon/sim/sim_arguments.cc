#include "daemon/sim/sim_arguments.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"
#include "daemon/policy/registry.h"

namespace mets::sim {
namespace {

constexpr double kLatestStart = 1e6;  // Seconds.
constexpr double kMostPercent = 1e6;

constexpr char kFooter[] =
    "SIZE is 192MiB, 12GiB or plain bytes; a percentage is of the sum of the "
    "traces' peaks.\nJobs that compute at once share the device's time "
    "evenly: together they take at least the sum of their ops' times "
    "(device_seconds), and at least as long as the longest alone "
    "(ideal_seconds). Ops of one job run slower while others copy: 6 % at 90 "
    "GB/s, as measured with a ResNet-50 training on an H100.\nTraces come from "
    "`metsctl record JOB FILE` (docs/trace_format.md); docs/simulator.md says "
    "what the figures mean.\nThe exit status is 0 when all jobs came to their "
    "ends, 2 when the command line is wrong, and 1 for all else: a trace that "
    "cannot be read, a job that the device is too small for, a file that "
    "cannot be written.";

CLI::Validator Check(std::function<absl::Status(const std::string&)> check) {
  return CLI::Validator(
      [check = std::move(check)](const std::string& text) {
        return std::string(check(text).message());
      },
      "");
}

// From `least` to `most`, both included. CLI::Range takes "nan", too.
CLI::Validator Between(double least, double most) {
  return Check([=](const std::string& text) {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no number from ", least, " to ", most));
  });
}

bool ParsePart(const std::string& text, Bytes* part) {
  const absl::StatusOr<Bytes> bytes = ParseBytes(text);
  if (bytes.ok()) *part = *bytes;
  return bytes.ok();
}

absl::Status CheckPolicy(const std::string& name) {
  if (name == kReferencePolicy) return absl::OkStatus();
  const absl::Status status = policy::MakePolicy(name).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(status.message(), ", ", kReferencePolicy));
}

void AddOptions(CLI::App* app, Arguments* arguments,
                std::vector<std::string>* traces) {
  std::vector<std::string> policies = policy::PolicyNames();
  arguments->policy = policies.front();
  policies.push_back(kReferencePolicy);
  app->add_option("--trace", *traces,
                  "A job: FILE[,start=SECONDS][,priority=N][,weight=N]"
                  "[,limit=SIZE][,guarantee=SIZE]; several for several jobs")
      ->required()
      ->check(Check([](const std::string& text) {
        return ParseTraceArgument(text).status();
      }))
      ->type_name("FILE");
  app->add_option("--device-memory", arguments->device_memory,
                  "The device's memory, default 100%")
      ->check(Check([](const std::string& text) {
        return ParseDeviceMemory(text, Bytes()).status();
      }))
      ->type_name("SIZE|PERCENT");
  app->add_option("--bus-gbps", arguments->bus_gbps,
                  "The bus, in 10^9 bytes a second each way; default 12")
      ->check(Between(1e-3, 1e6))
      ->type_name("N");
  app->add_option("--moves", arguments->moves,
                  "Copies that a job makes for its plan at once, each way; "
                  "default 2, as on GPUs; on host devices 1")
      ->check(Between(1, 64))
      ->type_name("N");
  app->add_option(
         "--policy", arguments->policy,
         absl::StrCat("Whose buffers leave: ", absl::StrJoin(policies, ", "),
                      "; default ", policies.front()))
      ->check(Check(CheckPolicy))
      ->type_name("NAME");
  app->add_option("--repeat", arguments->repeat,
                  "Each job does what its trace says so many times; default 1. "
                  "For traces of whole steps")
      ->check(Between(1, 1000))
      ->type_name("N");
  app->add_option("--input-work", arguments->input_work,
                  "This part of each job's time is work before each of its "
                  "steps that needs no device, as reading its input; default 0")
      ->check(Between(0, 99))
      ->type_name("PERCENT");
  app->add_option("--quantum", arguments->quantum,
                  "For comparison: jobs that do not fit together compute in "
                  "turns of so many seconds; default as METS decides")
      ->check(Between(1e-3, 1e6))
      ->type_name("SECONDS");
  app->add_flag("--no-plans", arguments->no_plans,
                "For comparison: no plans within steps; each op waits for its "
                "own buffers");
  app->add_option("--interference-bound", arguments->interference_bound,
                  "The part of its time that a job may lose to copies for jobs "
                  "of lower priority, 1: all that they take; default 0.02")
      ->check(Between(1e-6, 1))
      ->type_name("PART");
  app->add_option("--time-scale", arguments->program.time_scale,
                  "Multiplies the recorded times; default 1")
      ->check(Between(1e-6, 1e3))
      ->type_name("X");
  app->add_option("--accelerate", arguments->program.speedup,
                  "Ops take their recorded time over this, but at least their "
                  "bytes over 2.5 TB/s and 4 us: as on an accelerator")
      ->check(Between(1e-6, 1e6))
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
  if (argument.file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' names no file"));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> option =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const auto& [key, value] = option;
    bool ok = false;
    if (key == "start") {
      ok = absl::SimpleAtod(value, &argument.start) && argument.start >= 0 &&
           argument.start <= kLatestStart;
    } else if (key == "priority") {
      ok = absl::SimpleAtoi(value, &argument.priority) &&
           IsPriority(argument.priority);
    } else if (key == "weight") {
      ok = absl::SimpleAtoi(value, &argument.weight) &&
           IsWeight(argument.weight);
    } else if (key == "limit") {
      ok = ParsePart(value, &argument.limit) && !argument.limit.is_zero();
    } else if (key == "guarantee") {
      ok = ParsePart(value, &argument.guarantee);
    }
    if (ok) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        text, ": '", parts[i], "' is not start=SECONDS (0 to ", kLatestStart,
        "), priority=N (-", kMostPriority, " to ", kMostPriority,
        "), weight=N (1 to ", kMostWeight,
        "), limit=SIZE (above 0) or guarantee=SIZE, and a file's name "
        "must have no comma"));
  }
  return argument;
}

absl::StatusOr<Bytes> ParseDeviceMemory(absl::string_view text, Bytes peaks) {
  if (text.empty() || text.back() != '%') return ParseBytes(text);
  double percent = 0;
  if (!absl::SimpleAtod(text.substr(0, text.size() - 1), &percent) ||
      !(percent > 0 && percent <= kMostPercent)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no percentage from above 0 to ",
                     kMostPercent, ", as 60%"));
  }
  return Bytes(
      static_cast<int64_t>(static_cast<double>(peaks.count()) * percent / 100));
}

absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv) {
  CLI::App app(
      "mets-sim replays recorded jobs against a device of any size, through "
      "the decisions of metsd, in virtual time.",
      "mets-sim");
  app.footer(kFooter);
  Arguments arguments;
  std::vector<std::string> traces;
  AddOptions(&app, &arguments, &traces);
  // CLI11 reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    if (app.exit(error, out, err) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(error.what(), " (mets-sim --help lists the options)"));
    }
    arguments.help = out.str();
  }
  for (const std::string& text : traces) {
    METS_ASSIGN_OR_RETURN(arguments.traces.emplace_back(),
                          ParseTraceArgument(text));
  }
  return arguments;
}

}  // namespace mets::sim
