// Event: one decision, or what came of it, for people.
#ifndef METS_DAEMON_CORE_EVENTS_EVENT_H_
#define METS_DAEMON_CORE_EVENTS_EVENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace mets::core {

enum class EventKind {
  kAttached,      // A process of the job uses the device.
  kCameBack,      // It had a session with an earlier daemon.
  kEnded,         // The process has ended.
  kRefused,       // It broke the rules: text.
  kLimitSet,      // bytes; zero: none.
  kWaits,         // A request has waited for a while: bytes, took, text: why.
  kGranted,       // A request that had to wait: bytes, took.
  kDenied,        // bytes, took, text: the whole reason.
  kEvicted,       // bytes, copied, buffers, for_job, cause, took, next_use.
  kRestored,      // bytes, buffers, took.
  kModeChanged,   // How the device's jobs compute now: text.
  kTurn,          // The job's turn has ended: took, waited.
  kPlanned,       // The job's step has a plan: bytes a step, took: the step.
  kPlanEnded,     // It has none any more.
  kUnresponsive,  // A process has not answered an order in time.
  kResponds,      // It has.
  kCommanded,     // An operator's command; text.
  kShared,        // The job has published a share: bytes, text: its name.
  kShareTaken,    // A process of the job has attached it: likewise.
  kShareGone,     // Its last holder, of this job, has left it: likewise.
  kReturned,      // bytes that nobody has used; device: none for swap space.
  kStepped,       // It has repeated its step: count, took: the last one.
};

// Why buffers were evicted.
enum class EvictCause {
  kRequest,  // A request of for_job needed the memory.
  kLimit,    // The job had more than its limit.
  kTurn,     // It is the turn of for_job.
  kPlan,     // The job's own plan says so.
  kCommand,  // An operator said so.
};

struct Event {
  EventKind kind = EventKind::kAttached;
  // When it was over, where it took a while.
  absl::Time time = absl::InfinitePast();
  std::string device;
  std::string job;  // Whose.
  std::string for_job;
  EvictCause cause = EvictCause::kRequest;
  Bytes bytes;
  Bytes copied;       // Part of bytes; the rest was clean.
  int64_t count = 0;  // Of buffers, or of steps.
  absl::Duration took;
  absl::Duration waited;
  // Until the first of the buffers is used; infinite: nobody knows.
  absl::Duration next_use = absl::InfiniteDuration();
  std::string text;
};

// "evicted", as programs know it.
absl::string_view EventName(EventKind kind);

// Whether it is one of many that only together say something: turns and steps.
bool IsDetail(EventKind kind);

// Whether it is one of the many that a job makes while memory is short: buffers
// that left or came back, and requests that got what they waited for.
bool IsMove(EventKind kind);

// In one line of words: "evicted 1.2 GiB in 37 buffers of 'bert', next use in
// 4.1 s, for 'resnet': 23 ms". Of a reason with several lines, the first.
std::string EventText(const Event& event);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_EVENTS_EVENT_H_
