// metsctl trace: what metsd does with a job, for Perfetto's viewer.
#ifndef METS_CLIENT_CTL_WATCH_TRACE_COMMAND_H_
#define METS_CLIENT_CTL_WATCH_TRACE_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mets::ctl {

struct TraceOptions {
  std::string job;
  std::string file;
  absl::Duration limit = absl::InfiniteDuration();
  bool past = false;  // Begin with what metsd's log has.
};

// Follows the job until SIGINT, SIGTERM, the limit or the end of its last
// process, then writes the file. Of a job that has ended, writes what metsd's
// log has.
// NOT_FOUND for a job that metsd does not know; the file is not touched then.
absl::Status TraceCommand(const TraceOptions& options,
                          const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_WATCH_TRACE_COMMAND_H_
