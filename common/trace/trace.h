// Trace: a recording of what a job did with memory.
#ifndef METS_COMMON_TRACE_TRACE_H_
#define METS_COMMON_TRACE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::trace {

enum class EventKind : uint8_t {
  kBegin,  // An op begins; `id` is the op, `name` its name.
  kEnd,    // It ends; `id` is the op.
  kAlloc,  // `id` is a buffer in this and the following.
  kFree,
  kRead,
  kWrite,
};

struct Event {
  absl::Duration time;  // Since the recording began; never descending.
  EventKind kind = EventKind::kBegin;
  uint64_t id = 0;
  Bytes bytes;        // Of the buffer; zero for ops.
  uint32_t name = 0;  // Index into Trace::names; 0 is "".
};

// Events of one job, in order. Buffers that existed when the recording began
// are allocated at time zero. Accesses between an op's begin and end belong to
// it; traces of other tools have no ops.
struct Trace {
  std::string job;
  std::vector<std::string> names = {""};
  std::vector<Event> events;
};

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TRACE_H_
