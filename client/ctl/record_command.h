// `metsctl record`: writes the trace of a live job.
#ifndef METS_CLIENT_CTL_RECORD_COMMAND_H_
#define METS_CLIENT_CTL_RECORD_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mets::ctl {

struct RecordOptions {
  std::string job;
  std::string device;  // Empty: the only one that the job uses.
  std::string file;    // Compressed when it ends in ".xz".
  absl::Duration limit = absl::InfiniteDuration();
};

// Records until the time is over, the job ends or this process gets SIGINT or
// SIGTERM, and prints what the file has. The signals stay blocked. Errors leave
// the file as far as it was written, which readers refuse.
absl::Status RecordCommand(const RecordOptions& options,
                           const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_RECORD_COMMAND_H_
