#include "daemon/app/decisions/event_journal.h"

#include <limits>
#include <string>

namespace mets::app {
namespace {

constexpr double kBurst = 50;
constexpr double kLinesPerSecond = 2;
constexpr double kMovesPerSecond = 0.1;

bool IsWarning(core::EventKind kind) {
  return kind == core::EventKind::kDenied ||
         kind == core::EventKind::kRefused ||
         kind == core::EventKind::kUnresponsive;
}

}  // namespace

EventJournal::EventJournal(core::EventLog& events, spdlog::logger& log)
    : events_(events),
      log_(log),
      moves_(kMovesPerSecond, kBurst),
      others_(kLinesPerSecond, kBurst) {
  watch_ = events_.Watch([this] { WriteNew(); });
}

EventJournal::~EventJournal() { events_.Unwatch(watch_); }

void EventJournal::WriteNew() {
  const size_t all = std::numeric_limits<size_t>::max();
  for (const auto& entry : events_.Recent(written_, "", all)) {
    written_ = entry.number;
    if (core::IsDetail(entry.event.kind)) continue;
    Allowance& allowance = core::IsMove(entry.event.kind) ? moves_ : others_;
    if (!allowance.Take(entry.event.time)) {
      ++left_out_;
      continue;
    }
    if (left_out_ > 0) {
      log_.info("{} events were left out here; metsctl events has the newest",
                left_out_);
      left_out_ = 0;
    }
    Write(entry.event);
  }
}

void EventJournal::Write(const core::Event& event) {
  const auto level =
      IsWarning(event.kind) ? spdlog::level::warn : spdlog::level::info;
  const std::string text = event.kind == core::EventKind::kDenied
                               ? "denied: " + event.text
                               : core::EventText(event);
  log_.log(level, "{}{}{}", event.device, event.device.empty() ? "" : ": ",
           text);
}

}  // namespace mets::app
