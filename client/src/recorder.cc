#include "client/src/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/trace/trace_format.h"

namespace mets::client {

using trace::EventKind;

namespace {

// An event's line without its name is shorter.
constexpr size_t kLineBytes = 128;
constexpr size_t kNameBytes = 128;

Bytes SizeOf(const std::string& text) {
  return Bytes(static_cast<int64_t>(text.size()));
}

}  // namespace

absl::Status Recorder::Start(absl::string_view job,
                             const std::function<void(const AddLive&)>& list) {
  absl::MutexLock lock(&mutex_);
  if (on_ || ended_) {
    return absl::FailedPreconditionError("a recording of this device runs");
  }
  parts_ = {trace::FormatHeader(job)};
  waiting_ = SizeOf(parts_.back());
  events_ = 0;
  last_ = absl::ZeroDuration();
  began_ = std::chrono::steady_clock::now();
  live_.clear();
  ops_.clear();
  // From now on, whoever frees waits for the mutex.
  on_.store(true);
  list([this](uint64_t id, Bytes bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    live_[id] = bytes;
    Add(absl::ZeroDuration(), EventKind::kAlloc, id, bytes);
  });
  return absl::OkStatus();
}

std::string& Recorder::Text() {
  if (parts_.empty() ||
      parts_.back().size() + kLineBytes + kNameBytes > kPartBytes) {
    parts_.emplace_back();
  }
  return parts_.back();
}

void Recorder::End(absl::string_view line) {
  if (!on_) return;
  on_ = false;
  ended_ = true;
  absl::StrAppend(&Text(), line);
  waiting_ += Bytes(static_cast<int64_t>(line.size()));
}

void Recorder::EndBy(absl::string_view why) {
  if (!on_) return;
  error_ = std::string(why.substr(0, kNameBytes));
  End(trace::FormatError(error_));
}

void Recorder::Stop() {
  absl::MutexLock lock(&mutex_);
  End(trace::FormatEnd(events_));
}

void Recorder::Fail(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  EndBy(why);
}

absl::Duration Recorder::Now() const {
  return std::max(absl::FromChrono(std::chrono::steady_clock::now() - began_),
                  last_);
}

void Recorder::Add(absl::Duration time, EventKind kind, uint64_t id,
                   Bytes bytes, absl::string_view name) {
  std::string& text = Text();
  const Bytes before = SizeOf(text);
  trace::AppendEvent(time, kind, id, bytes, name.substr(0, kNameBytes), &text);
  waiting_ += SizeOf(text) - before;
  last_ = time;
  ++events_;
  if (waiting_ <= most_) return;
  EndBy(absl::StrCat("events came faster than they were taken: ",
                     FormatBytes(most_), " waited"));
}

void Recorder::Alloc(uint64_t id, Bytes bytes) {
  absl::MutexLock lock(&mutex_);
  if (!on_) return;
  live_[id] = bytes;
  Add(Now(), EventKind::kAlloc, id, bytes);
}

void Recorder::Free(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const auto it = live_.find(id);
  if (!on_ || it == live_.end()) return;
  Add(Now(), EventKind::kFree, id, it->second);
  live_.erase(it);
}

void Recorder::Touch(absl::Duration time, uint64_t id, bool write) {
  const auto it = live_.find(id);
  if (!on_ || it == live_.end()) return;
  Add(time, write ? EventKind::kWrite : EventKind::kRead, id, it->second);
}

void Recorder::Write(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  if (on_) Touch(Now(), id, true);
}

uint64_t Recorder::BeginOp(const char* name, const Access* accesses,
                           size_t count) {
  absl::MutexLock lock(&mutex_);
  if (!on_) return 0;
  const absl::Duration now = Now();
  const uint64_t op = ++last_op_;
  ops_.insert(op);
  Add(now, EventKind::kBegin, op, Bytes(), name == nullptr ? "" : name);
  for (size_t i = 0; i < count; ++i) {
    Touch(now, accesses[i].id, accesses[i].write);
  }
  return op;
}

void Recorder::EndOp(uint64_t op) {
  absl::MutexLock lock(&mutex_);
  if (on_ && ops_.erase(op) == 1) Add(Now(), EventKind::kEnd, op, Bytes());
}

void Recorder::Discard() {
  Stop();
  while (!Take().last) {
  }
}

Recorder::Part Recorder::Take() {
  absl::MutexLock lock(&mutex_);
  Part part;
  if (!parts_.empty()) {
    part.text = std::move(parts_.front());
    parts_.pop_front();
    waiting_ -= SizeOf(part.text);
  }
  if (parts_.empty()) part.last = std::exchange(ended_, false);
  if (part.last) part.error = std::exchange(error_, "");
  return part;
}

}  // namespace mets::client
