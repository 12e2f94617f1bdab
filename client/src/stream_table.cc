#include "client/src/stream_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

// Work of so long is waited for in vain at most.
constexpr int64_t kMarkEveryNs = 300'000;
constexpr size_t kMostMarks = 1024;

}  // namespace

size_t StreamTable::FirstPlace(mets_stream stream) {
  // Fibonacci hashing: pointers differ in their middle bits.
  return static_cast<size_t>(
      (reinterpret_cast<uintptr_t>(stream) * uint64_t{0x9e3779b97f4a7c15}) >>
      57);
}

absl::StatusOr<Stream> StreamTable::FindOwn(mets_stream stream) {
  for (size_t i = FirstPlace(stream);; ++i) {
    const Place& place = places_[i % kPlaces];
    const mets_stream there = place.stream.load(std::memory_order_acquire);
    if (there == stream) return place.value;
    if (there == nullptr) return Add(stream);
  }
}

absl::StatusOr<Stream> StreamTable::Add(mets_stream stream) {
  // The driver gives one stream one handle, whoever asks first.
  const absl::StatusOr<StreamHandle> handle = driver_.AdoptStream(stream);
  if (absl::IsUnimplemented(handle.status())) {
    return absl::InvalidArgumentError(
        "programs have no streams on this device: the stream must be NULL");
  }
  METS_RETURN_IF_ERROR(handle.status());
  absl::MutexLock lock(&mutex_);
  size_t i = FirstPlace(stream);
  for (;; ++i) {
    const mets_stream there = places_[i % kPlaces].stream;
    if (there == stream) return places_[i % kPlaces].value;
    if (there == nullptr) break;
  }
  if (handles_.size() >= kOwnBits) {
    const auto [late, is_new] = late_.emplace(stream, Stream{});
    if (is_new) {
      late->second = {*handle, kSharedBit};
      handles_.push_back(*handle);
      all_.fetch_or(kSharedBit, std::memory_order_release);
    }
    return late->second;
  }
  Place& place = places_[i % kPlaces];
  place.value = {*handle, StreamMask{1} << handles_.size()};
  handles_.push_back(*handle);
  all_.fetch_or(place.value.bit, std::memory_order_release);
  place.stream.store(stream, std::memory_order_release);
  return place.value;
}

Stream StreamTable::FindOrLog(mets_stream stream) {
  absl::StatusOr<Stream> found = FindOwn(stream);
  if (found.ok()) return *found;
  if (!logged_.exchange(true)) {
    Log(LogLevel::kError, absl::StrCat("a stream is taken for host order: ",
                                       found.status().message()));
  }
  return Stream();
}

std::vector<StreamHandle> StreamTable::HandlesOf(StreamMask streams) {
  absl::MutexLock lock(&mutex_);
  if ((streams & kSharedBit) != 0) return handles_;
  std::vector<StreamHandle> handles;
  for (; streams != 0; streams &= streams - 1) {
    handles.push_back(handles_[__builtin_ctzll(streams)]);
  }
  return handles;
}

void StreamTable::Mark() {
  const int64_t now = absl::GetCurrentTimeNanos();
  if (now - marked_ns_.load(std::memory_order_relaxed) < kMarkEveryNs ||
      !marking_.TryLock()) {
    return;
  }
  marked_ns_.store(now, std::memory_order_relaxed);
  // Who adds work behind a fence has yet to read this number.
  Marked mark{++begun_, {}};
  absl::Status status;
  mark.fences = Record(kSharedBit, &status);
  if (status.ok()) {
    absl::MutexLock lock(&marks_mutex_);
    marks_.push_back(std::move(mark));
    if (marks_.size() > kMostMarks) marks_.pop_front();
  }
  marking_.Unlock();
}

std::vector<Fence> StreamTable::Record(StreamMask streams, absl::Status* status,
                                       StreamHandle except) {
  std::vector<Fence> fences;
  for (StreamHandle handle : HandlesOf(streams)) {
    if (handle == except) continue;
    const absl::StatusOr<Fence> fence = driver_.Record(handle);
    status->Update(fence.status());
    if (fence.ok()) fences.push_back(*fence);
  }
  return fences;
}

std::vector<Fence> StreamTable::Fences(StreamMask streams, Moment then,
                                       absl::Status* status,
                                       StreamHandle except) {
  {
    absl::MutexLock lock(&marks_mutex_);
    const auto mark = std::partition_point(
        marks_.begin(), marks_.end(),
        [then](const Marked& m) { return m.number <= then; });
    if (mark != marks_.end()) {
      if ((streams & kSharedBit) != 0) return mark->fences;
      std::vector<Fence> fences;
      for (; streams != 0; streams &= streams - 1) {
        fences.push_back(mark->fences.at(__builtin_ctzll(streams)));
      }
      return fences;
    }
  }
  return Record(streams, status, except);
}

bool StreamTable::Idle() {
  const std::vector<StreamHandle> handles = HandlesOf(all());
  return std::all_of(handles.begin(), handles.end(), [this](StreamHandle h) {
    return driver_.IsIdle(h).value_or(false);
  });
}

absl::Status StreamTable::Wait(StreamMask streams, Moment then) {
  if (streams == 0) return absl::OkStatus();
  absl::Status result;
  for (Fence fence : Fences(streams, then, &result)) {
    result.Update(driver_.Wait(fence));
  }
  return result;
}

void StreamTable::Order(const Stream& stream, StreamMask others, Moment then) {
  if (others == 0) return;
  absl::Status status;
  if (stream.handle == StreamHandle::kHostOrder) {
    status = Wait(others, then);
  } else {
    for (Fence fence : Fences(others, then, &status, stream.handle)) {
      status.Update(driver_.StreamWait(stream.handle, fence));
    }
    if (!status.ok()) status = Wait(others);
  }
  if (!status.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("cannot wait for a stream: ", status.message()));
  }
}

}  // namespace mets::client
