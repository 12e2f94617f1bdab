#include "daemon/transport/admin/event_call.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/transport/admin/event_messages.h"
#include "daemon/transport/sessions/session_service.h"

namespace mets::transport {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();

}  // namespace

EventCall::EventCall(const core::EventLog& log,
                     const v1::WatchEventsRequest& request,
                     std::function<void()> on_done)
    : log_(log), request_(request), on_done_(std::move(on_done)) {}

void EventCall::Begin() {
  absl::MutexLock lock(&mutex_);
  // What is there already counts as taken, but for the newest of it.
  const auto all = log_.Recent(0, "", 1);
  Take(0, kAll);
  while (queue_.size() > request_.newest()) queue_.pop_front();
  if (!all.empty()) taken_ = std::max(taken_, all.back().number);
  begun_ = true;
  ending_ = !request_.follow();
  WriteNext();
}

void EventCall::Take(uint64_t after, size_t most) {
  for (const auto& entry : log_.Recent(after, request_.job(), most)) {
    taken_ = std::max(taken_, entry.number);
    if (core::IsDetail(entry.event.kind) && !request_.details()) continue;
    queue_.push_back(ToMessage(entry));
  }
}

void EventCall::Wake() {
  absl::MutexLock lock(&mutex_);
  if (!begun_ || ending_ || writing_) return;
  Take(taken_, kAll);
  WriteNext();
}

void EventCall::End(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (finished_) return;
  ending_ = true;
  status_ = status;
  if (!writing_) queue_.clear();
  if (!writing_) WriteNext();
}

void EventCall::WriteNext() {
  if (!queue_.empty()) {
    writing_ = true;
    StartWrite(&queue_.front());
  } else if (ending_ && !finished_) {
    finished_ = true;
    Finish(ToGrpc(status_));
  }
}

void EventCall::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  queue_.pop_front();
  if (!ok || !status_.ok()) {
    ending_ = true;
    queue_.clear();
  }
  if (queue_.empty() && !ending_) Take(taken_, kAll);
  WriteNext();
}

void EventCall::OnCancel() {
  End(absl::CancelledError("the operator has gone"));
}

void EventCall::OnDone() { on_done_(); }

}  // namespace mets::transport
