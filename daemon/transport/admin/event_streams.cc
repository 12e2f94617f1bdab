#include "daemon/transport/admin/event_streams.h"

#include <utility>
#include <vector>

namespace mets::transport {

EventStreams::EventStreams(core::EventLog& log) : log_(log) {
  watch_ = log_.Watch([this] { WakeAll(); });
}

EventStreams::~EventStreams() {
  Abort();
  log_.Unwatch(watch_);
}

EventCall* EventStreams::Start(const v1::WatchEventsRequest& request) {
  std::shared_ptr<EventCall> call;
  bool aborted;
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t number = ++last_;
    call = std::make_shared<EventCall>(log_, request, [this, number] {
      std::shared_ptr<EventCall> done;  // Destroyed without the lock.
      absl::MutexLock done_lock(&mutex_);
      done = std::move(calls_[number]);
      calls_.erase(number);
    });
    calls_[number] = call;
    aborted = aborted_;
  }
  call->Begin();
  if (aborted) call->End(absl::UnavailableError("metsd is stopping"));
  return call.get();
}

void EventStreams::WakeAll() {
  std::vector<std::shared_ptr<EventCall>> calls;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [number, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) call->Wake();
}

void EventStreams::Abort() {
  std::vector<std::shared_ptr<EventCall>> calls;
  {
    absl::MutexLock lock(&mutex_);
    aborted_ = true;
    for (const auto& [number, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) {
    call->End(absl::UnavailableError("metsd is stopping"));
  }
}

}  // namespace mets::transport
