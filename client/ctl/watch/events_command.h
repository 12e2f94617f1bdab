// metsctl events: what metsd has decided.
#ifndef METS_CLIENT_CTL_WATCH_EVENTS_COMMAND_H_
#define METS_CLIENT_CTL_WATCH_EVENTS_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "mets/v1/events.pb.h"

namespace mets::ctl {

struct EventsOptions {
  std::string job;  // Empty: all.
  uint32_t newest = 50;
  bool follow = false;
  bool details = false;
  bool json = false;
};

// "2026-01-02 03:04:05.678 host0 evicted 1.2 GiB in ...", of a denial the whole
// reason, in local time; or one JSON object. Ends with a line feed.
std::string EventLine(const v1::Event& event, bool json);

// Prints events, one a line; with `follow`, until SIGINT or SIGTERM, which is
// no error.
absl::Status EventsCommand(const EventsOptions& options,
                           const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_WATCH_EVENTS_COMMAND_H_
