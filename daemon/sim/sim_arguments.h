// mets-sim's command line.
#ifndef METS_DAEMON_SIM_SIM_ARGUMENTS_H_
#define METS_DAEMON_SIM_SIM_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "daemon/sim/job_program.h"
#include "daemon/sim/machine.h"

namespace mets::sim {

// FILE[,start=SECONDS][,priority=N][,weight=N][,limit=SIZE][,guarantee=SIZE].
struct TraceArgument {
  std::string file;
  double start = 0;
  int priority = 0;
  int weight = 1;
  Bytes limit, guarantee;  // Zero: none.
};
// INVALID_ARGUMENT with what is wrong and what was expected.
absl::StatusOr<TraceArgument> ParseTraceArgument(absl::string_view text);

// "12GiB", or "60%" of `peaks`.
absl::StatusOr<Bytes> ParseDeviceMemory(absl::string_view text, Bytes peaks);

// The policy that only mets-sim has, beside those of policy/registry.h.
inline constexpr char kReferencePolicy[] = "belady";

struct Arguments {
  std::vector<TraceArgument> traces;
  std::string device_memory = "100%";  // ParseDeviceMemory takes it.
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
  std::string help;  // What was asked for is this text, and nothing else.
};
// INVALID_ARGUMENT with the option, what is wrong with it and what was
// expected.
absl::StatusOr<Arguments> ParseArguments(int argc, const char* const* argv);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_ARGUMENTS_H_
