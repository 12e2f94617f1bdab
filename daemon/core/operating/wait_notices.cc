#include "daemon/core/operating/wait_notices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/duration_text.h"
#include "daemon/core/reports/denial_text.h"
#include "daemon/core/reports/memory_report.h"

namespace mets::core {
namespace {

constexpr absl::Duration kSayAfter = absl::Seconds(2);
constexpr absl::Duration kNotAgainFor = absl::Seconds(60);

}  // namespace

absl::Time WaitNotices::DueAt(const Request& request) const {
  if (request.no_wait || request.assembling) return absl::InfiniteFuture();
  const auto session = state_.sessions.all().find(request.session);
  if (session == state_.sessions.all().end() || !session->second.connected()) {
    return absl::InfiniteFuture();
  }
  const absl::Time told = session->second.told_waiting;
  if (told >= request.arrived) return absl::InfiniteFuture();
  return std::max(request.arrived + kSayAfter, told + kNotAgainFor);
}

void WaitNotices::Tell(size_t index, const Request& request, Session& session) {
  session.told_waiting = state_.now;
  state_.Send(SendNotice{
      session.id,
      absl::StrCat("waiting for ",
                   AskedText(state_, index, session, request.total), " for ",
                   DurationText(state_.now - request.arrived), "; the pool of ",
                   FormatBytes(state_.devices[index].ledger.pool()), " has ",
                   absl::StrJoin(HolderLines(state_, index), "; "),
                   ". METS_WAIT sets how long to wait")});
}

void WaitNotices::Advance() {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    for (const auto& [number, request] : state_.devices[i].queue.all()) {
      if (DueAt(request) > state_.now) continue;
      Tell(i, request, *state_.sessions.Find(request.session));
    }
  }
}

absl::Time WaitNotices::next_deadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Device& device : state_.devices) {
    for (const auto& [number, request] : device.queue.all()) {
      next = std::min(next, DueAt(request));
    }
  }
  return next;
}

}  // namespace mets::core
