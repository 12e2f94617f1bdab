// metsctl why: why a job does not compute.
#ifndef METS_CLIENT_CTL_WATCH_WHY_COMMAND_H_
#define METS_CLIENT_CTL_WATCH_WHY_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "mets/v1/events.pb.h"

namespace mets::ctl {

// What `metsctl why` prints: per device what the job does, why, what would
// help; then what happened to it last.
std::string WhyText(const std::string& job,
                    const v1::ExplainJobResponse& answer);
std::string WhyJson(const v1::ExplainJobResponse& answer);

// NOT_FOUND for a job that metsd does not know.
absl::Status WhyCommand(const std::string& job, bool json,
                        const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_WATCH_WHY_COMMAND_H_
