#include "client/src/stream_table.h"

#include "absl/strings/str_cat.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"

namespace mets::client {

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

absl::Status StreamTable::Wait(StreamMask streams) {
  if (streams == 0) return absl::OkStatus();
  absl::Status result;
  std::vector<Fence> fences;
  for (StreamHandle handle : HandlesOf(streams)) {
    const absl::StatusOr<Fence> fence = driver_.Record(handle);
    result.Update(fence.status());
    if (fence.ok()) fences.push_back(*fence);
  }
  for (Fence fence : fences) result.Update(driver_.Wait(fence));
  return result;
}

void StreamTable::Order(const Stream& stream, StreamMask others) {
  if (others == 0) return;
  absl::Status status;
  if (stream.handle == StreamHandle::kHostOrder) {
    status = Wait(others);
  } else {
    for (StreamHandle other : HandlesOf(others)) {
      if (other == stream.handle) continue;
      const absl::StatusOr<Fence> fence = driver_.Record(other);
      status.Update(fence.ok() ? driver_.StreamWait(stream.handle, *fence)
                               : fence.status());
    }
    if (!status.ok()) status = Wait(others);
  }
  if (!status.ok()) {
    Log(LogLevel::kError,
        absl::StrCat("cannot wait for a stream: ", status.message()));
  }
}

}  // namespace mets::client
