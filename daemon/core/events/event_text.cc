#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/duration_text.h"
#include "daemon/core/events/event.h"

namespace mets::core {
namespace {

std::string Quoted(const std::string& job) {
  return absl::StrCat("'", job, "'");
}

std::string Buffers(int64_t count) {
  return absl::StrCat(count, count == 1 ? " buffer" : " buffers");
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string CauseText(const Event& event) {
  switch (event.cause) {
    case EvictCause::kRequest:
      return event.for_job == event.job
                 ? std::string(", for another need of its own")
                 : absl::StrCat(", for ", Quoted(event.for_job));
    case EvictCause::kLimit:
      return ", for its limit";
    case EvictCause::kTurn:
      return absl::StrCat(", for the turn of ", Quoted(event.for_job));
    case EvictCause::kPlan:
      return ", as its plan says";
    case EvictCause::kCommand:
      return ", as an operator said";
  }
  return "";
}

std::string EvictedText(const Event& event) {
  std::string text =
      absl::StrCat("evicted ", FormatBytes(event.bytes), " in ",
                   Buffers(event.count), " of ", Quoted(event.job));
  const Bytes clean = event.bytes - event.copied;
  if (clean == event.bytes) {
    absl::StrAppend(&text, " without a copy");
  } else if (!clean.is_zero()) {
    absl::StrAppend(&text, " (", FormatBytes(clean), " without a copy)");
  }
  if (event.next_use != absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", next use in ", DurationText(event.next_use));
  }
  return absl::StrCat(text, CauseText(event), ": ", DurationText(event.took));
}

std::string ShareText(const Event& event) {
  const std::string share = event.text.empty()
                                ? "memory shared before a restart of metsd"
                                : absl::StrCat("share ", Quoted(event.text));
  const std::string bytes = FormatBytes(event.bytes);
  switch (event.kind) {
    case EventKind::kShared:
      return absl::StrCat(Quoted(event.job), " has published ", share, " of ",
                          bytes, " on ", event.device);
    case EventKind::kShareTaken:
      return absl::StrCat("a process of ", Quoted(event.job), " has attached ",
                          share, " of ", bytes);
    default:
      return absl::StrCat(share, " is gone: ", Quoted(event.job),
                          " was the last to have its ", bytes);
  }
}

std::string LimitText(const Event& event) {
  return event.bytes.is_zero()
             ? absl::StrCat(Quoted(event.job), " has no limit any more")
             : absl::StrCat(Quoted(event.job), " is limited to ",
                            FormatBytes(event.bytes));
}

// What the job did or what happened to it, without numbers of its own.
std::string PlainText(const Event& event) {
  const std::string job = Quoted(event.job);
  switch (event.kind) {
    case EventKind::kAttached:
      return absl::StrCat("a process of ", job, " uses ", event.device);
    case EventKind::kCameBack:
      return absl::StrCat("a process of ", job,
                          " is back after a restart of metsd");
    case EventKind::kEnded:
      return absl::StrCat("a process of ", job, " has ended");
    case EventKind::kRefused:
      return absl::StrCat("refused a process of ", job, ": it ",
                          FirstLine(event.text));
    case EventKind::kModeChanged:
      return absl::StrCat("jobs on ", event.device, " compute ", event.text);
    case EventKind::kCommanded:
      return absl::StrCat("an operator ", event.text);
    case EventKind::kPlanEnded:
      return absl::StrCat(job, " needs no plan any more");
    case EventKind::kUnresponsive:
      return absl::StrCat("a process of ", job,
                          " does not answer: other jobs' memory is used");
    default:
      return absl::StrCat("a process of ", job, " answers again");
  }
}

}  // namespace

std::string EventText(const Event& event) {
  const std::string job = Quoted(event.job);
  const std::string bytes = FormatBytes(event.bytes);
  const std::string took = DurationText(event.took);
  switch (event.kind) {
    case EventKind::kLimitSet:
      return LimitText(event);
    case EventKind::kShared:
    case EventKind::kShareTaken:
    case EventKind::kShareGone:
      return ShareText(event);
    case EventKind::kWaits:
      return absl::StrCat(job, " has waited ", took, " for ", bytes, ": ",
                          FirstLine(event.text));
    case EventKind::kGranted:
      return absl::StrCat("granted ", bytes, " to ", job, " after ", took);
    case EventKind::kDenied:
      return absl::StrCat("denied: ", FirstLine(event.text));
    case EventKind::kEvicted:
      return EvictedText(event);
    case EventKind::kRestored:
      return absl::StrCat("restored ", bytes, " in ", Buffers(event.count),
                          " of ", job, ": ", took);
    case EventKind::kTurn:
      return absl::StrCat(job, " had the device for ", took,
                          ", after it had waited ", DurationText(event.waited));
    case EventKind::kPlanned:
      return absl::StrCat("planned the step of ", job, ": in each, ", bytes,
                          " leave and come back (", took, " a step)");
    case EventKind::kReturned:
      return event.device.empty()
                 ? absl::StrCat("returned ", bytes,
                                " of unused swap space to the machine")
                 : absl::StrCat("returned ", bytes, " of unused memory to ",
                                event.device);
    case EventKind::kStepped:
      return absl::StrCat(job, " has made ", event.count,
                          event.count == 1 ? " step" : " steps",
                          ", the last one in ", took);
    default:
      return PlainText(event);
  }
}

absl::string_view EventName(EventKind kind) {
  switch (kind) {
    case EventKind::kAttached:
      return "attached";
    case EventKind::kCameBack:
      return "came_back";
    case EventKind::kEnded:
      return "ended";
    case EventKind::kRefused:
      return "refused";
    case EventKind::kLimitSet:
      return "limit_set";
    case EventKind::kWaits:
      return "waits";
    case EventKind::kGranted:
      return "granted";
    case EventKind::kDenied:
      return "denied";
    case EventKind::kEvicted:
      return "evicted";
    case EventKind::kRestored:
      return "restored";
    case EventKind::kModeChanged:
      return "mode_changed";
    case EventKind::kTurn:
      return "turn";
    case EventKind::kPlanned:
      return "planned";
    case EventKind::kPlanEnded:
      return "plan_ended";
    case EventKind::kUnresponsive:
      return "unresponsive";
    case EventKind::kResponds:
      return "responds";
    case EventKind::kCommanded:
      return "commanded";
    case EventKind::kShared:
      return "shared";
    case EventKind::kShareTaken:
      return "share_taken";
    case EventKind::kShareGone:
      return "share_gone";
    case EventKind::kReturned:
      return "returned";
    case EventKind::kStepped:
      return "stepped";
  }
  return "unknown";
}

bool IsDetail(EventKind kind) {
  return kind == EventKind::kTurn || kind == EventKind::kStepped;
}

bool IsMove(EventKind kind) {
  return kind == EventKind::kEvicted || kind == EventKind::kRestored ||
         kind == EventKind::kGranted;
}

}  // namespace mets::core
