#include "daemon/app/decisions/decision_log.h"

#include <algorithm>
#include <utility>

namespace mets::app {
namespace {

// More jobs than that at once are all new to us.
constexpr size_t kMostAllowances = 4096;

Bytes SizeOf(const core::Event& event) {
  return Bytes(static_cast<int64_t>(sizeof(core::EventLog::Entry) +
                                    event.device.size() + event.job.size() +
                                    event.for_job.size() + event.text.size()));
}

bool Matches(const core::Event& event, const std::string& job) {
  return job.empty() || event.job.empty() || event.job == job ||
         event.for_job == job;
}

// Appends what matches of the newest entries, newest first.
void Collect(const std::deque<core::EventLog::Entry>& entries, uint64_t after,
             const std::string& job, size_t most,
             std::vector<core::EventLog::Entry>* found) {
  size_t taken = 0;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    if (it->number <= after || taken == most) return;
    if (!Matches(it->event, job)) continue;
    found->push_back(*it);
    ++taken;
  }
}

}  // namespace

DecisionLog::DecisionLog(DecisionLogOptions options) : options_(options) {
  {
    absl::MutexLock lock(&mutex_);
    decisions_.most = options_.decisions;
    details_.most = options_.details;
  }
  thread_ = std::thread([this] { Run(); });
}

DecisionLog::~DecisionLog() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void DecisionLog::Add(std::vector<core::Event> events) {
  absl::MutexLock lock(&mutex_);
  for (core::Event& event : events) {
    if (!Allowed(event)) {
      ++dropped_;
      continue;
    }
    Ring& ring = core::IsDetail(event.kind) ? details_ : decisions_;
    Keep(std::move(event), &ring);
  }
}

bool DecisionLog::Allowed(const core::Event& event) {
  if (allowances_.size() >= kMostAllowances) allowances_.clear();
  const bool many = core::IsMove(event.kind) || core::IsDetail(event.kind);
  const auto it = allowances_
                      .try_emplace({event.job, many}, options_.per_second,
                                   options_.burst)
                      .first;
  return it->second.Take(event.time);
}

void DecisionLog::Keep(core::Event event, Ring* ring) {
  ring->bytes += SizeOf(event);
  ring->entries.push_back({++last_, std::move(event)});
  while (ring->bytes > ring->most) {
    ring->bytes -= SizeOf(ring->entries.front().event);
    ring->entries.pop_front();
  }
}

std::vector<core::EventLog::Entry> DecisionLog::Recent(uint64_t after,
                                                       const std::string& job,
                                                       size_t most) const {
  std::vector<Entry> found;
  absl::MutexLock lock(&mutex_);
  Collect(decisions_.entries, after, job, most, &found);
  const size_t decisions = found.size();
  Collect(details_.entries, after, job, most, &found);
  const auto newer = [](const Entry& a, const Entry& b) {
    return a.number > b.number;
  };
  std::inplace_merge(found.begin(), found.begin() + decisions, found.end(),
                     newer);
  std::reverse(found.begin(), found.end());
  return found;
}

uint64_t DecisionLog::Watch(std::function<void()> wake) {
  absl::MutexLock lock(&watch_mutex_);
  watches_[++last_watch_] = std::move(wake);
  return last_watch_;
}

void DecisionLog::Unwatch(uint64_t watch) {
  absl::MutexLock lock(&watch_mutex_);
  watches_.erase(watch);
}

int64_t DecisionLog::dropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

void DecisionLog::Run() {
  uint64_t told = 0;
  const auto news = [this, &told]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_ != told || stopping_;
  };
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&news));
      if (stopping_) return;
      told = last_;
    }
    absl::MutexLock lock(&watch_mutex_);
    for (const auto& [watch, wake] : watches_) wake();
  }
}

}  // namespace mets::app
