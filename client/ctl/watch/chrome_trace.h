// ChromeTrace: events of a job as a trace for Perfetto's viewer.
#ifndef METS_CLIENT_CTL_WATCH_CHROME_TRACE_H_
#define METS_CLIENT_CTL_WATCH_CHROME_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mets/v1/admin.pb.h"
#include "mets/v1/events.pb.h"

namespace mets::ctl {

// What a job had at one moment.
struct MemoryPoint {
  int64_t unix_us = 0;
  std::string device;
  uint64_t resident_bytes = 0;
  uint64_t swapped_bytes = 0;
  uint64_t pinned_bytes = 0;
};

// The JSON of Chrome's trace event format: a process with a thread for each
// kind of slice (steps, turns, waits for memory, evictions, restores, evictions
// of others for the job), counters for its memory, and instants for the rest.
// Slices of one kind that overlap are put on several threads. Times are
// microseconds since the first of all; events that are partly before it are
// not cut.
std::string ChromeTrace(const std::string& job,
                        const std::vector<v1::Event>& events,
                        const std::vector<MemoryPoint>& points);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_WATCH_CHROME_TRACE_H_
