// What the status page's script asks for, as JSON.
#ifndef METS_DAEMON_STATUS_PAGE_PAGE_JSON_H_
#define METS_DAEMON_STATUS_PAGE_PAGE_JSON_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/ports.h"
#include "daemon/status_page/sampler.h"

namespace mets::status_page {

// Of the daemon, for people.
struct Identity {
  std::string version;
  std::string host;
  absl::Time started;
};

// {"version", "host", "uptime_seconds", "policy", "devices": [...],
//  "jobs": [...], "samples": [...]}: sizes in bytes, times in seconds. Samples
// are arrays [number, unix_seconds, [resident, swapped, evicted/s,
// restored/s] for each device...].
std::string StatusJson(const Identity& identity, absl::Time now,
                       const core::Status& status,
                       const std::vector<Sample>& samples);

// [{"number", "unix_us", "kind", "job", "for_job", "device", "cause", "bytes",
// "count", "text"}, ...],
// without details.
std::string EventsJson(const std::vector<core::EventLog::Entry>& entries);

// [{"device", "phase", "summary", "reasons", "advice", "report"}, ...].
std::string WhyJson(const std::vector<core::WhyAnswer>& answers);

}  // namespace mets::status_page

#endif  // METS_DAEMON_STATUS_PAGE_PAGE_JSON_H_
