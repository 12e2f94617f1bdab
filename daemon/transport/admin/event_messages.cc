#include "daemon/transport/admin/event_messages.h"

#include <limits>
#include <map>
#include <utility>

namespace mets::transport {
namespace {

const char* CauseName(core::EvictCause cause) {
  switch (cause) {
    case core::EvictCause::kRequest:
      return "request";
    case core::EvictCause::kLimit:
      return "limit";
    case core::EvictCause::kTurn:
      return "turn";
    case core::EvictCause::kPlan:
      return "plan";
    case core::EvictCause::kCommand:
      return "command";
  }
  return "";
}

}  // namespace

v1::Event ToMessage(const core::EventLog::Entry& entry) {
  const core::Event& event = entry.event;
  v1::Event to;
  to.set_number(entry.number);
  to.set_unix_us(absl::ToUnixMicros(event.time));
  const absl::string_view kind = core::EventName(event.kind);
  to.set_kind(kind.data(), kind.size());
  to.set_device(event.device);
  to.set_job(event.job);
  to.set_for_job(event.for_job);
  if (event.kind == core::EventKind::kEvicted) {
    to.set_cause(CauseName(event.cause));
  }
  to.set_bytes(event.bytes.count());
  to.set_copied_bytes(event.copied.count());
  to.set_count(event.count);
  to.set_took_seconds(absl::ToDoubleSeconds(event.took));
  to.set_waited_seconds(absl::ToDoubleSeconds(event.waited));
  if (event.next_use != absl::InfiniteDuration()) {
    to.set_next_use_seconds(absl::ToDoubleSeconds(event.next_use));
  }
  to.set_reason(event.text);
  to.set_text(core::EventText(event));
  to.set_detail(core::IsDetail(event.kind));
  return to;
}

void FillAnswer(const core::WhyAnswer& from, v1::JobAnswer* to) {
  to->set_device(from.device);
  to->set_phase(core::PhaseName(from.phase));
  to->set_summary(from.summary);
  for (const std::string& line : from.reasons) to->add_reasons(line);
  for (const std::string& line : from.advice) to->add_advice(line);
  to->set_report(from.report);
}

void FillLast(const core::EventLog& log, const std::string& job,
              v1::ExplainJobResponse* response) {
  std::map<core::EventKind, core::EventLog::Entry> newest;
  const size_t all = std::numeric_limits<size_t>::max();
  for (core::EventLog::Entry& entry : log.Recent(0, job, all)) {
    const core::EventKind kind = entry.event.kind;
    if (entry.event.job == job &&
        (kind == core::EventKind::kEvicted ||
         kind == core::EventKind::kGranted ||
         kind == core::EventKind::kDenied || kind == core::EventKind::kEnded)) {
      newest[kind] = std::move(entry);
    }
  }
  std::map<uint64_t, const core::EventLog::Entry*> by_number;
  for (const auto& [kind, entry] : newest) by_number[entry.number] = &entry;
  for (const auto& [number, entry] : by_number) {
    *response->add_last() = ToMessage(*entry);
  }
}

}  // namespace mets::transport
