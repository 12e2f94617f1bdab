// mets-sim's command line.
#ifndef METS_DAEMON_SIM_SIM_COMMAND_H_
#define METS_DAEMON_SIM_SIM_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"

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

// Runs mets-sim; the exit status: 0, 1 when a trace cannot be read or replayed,
// 2 for a wrong command line.
int RunMetsSim(int argc, const char* const* argv);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_COMMAND_H_
