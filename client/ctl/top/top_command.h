// metsctl top: devices and jobs in a terminal, live.
#ifndef METS_CLIENT_CTL_TOP_TOP_COMMAND_H_
#define METS_CLIENT_CTL_TOP_TOP_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mets::ctl {

struct TopOptions {
  absl::Duration period = absl::Seconds(1);
  bool once = false;  // Print it once, with the rates of one period.
  std::string filter;
};

// Until q is typed. Where the output is no terminal, as with `once`.
absl::Status TopCommand(const TopOptions& options, const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_TOP_TOP_COMMAND_H_
