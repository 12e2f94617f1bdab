#include "common/device/host/stream_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr int kNumberBits = 48;
constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;
constexpr size_t kMaxStreams = (size_t{1} << (64 - kNumberBits)) - 1;

Fence MakeFence(StreamHandle stream, uint64_t number) {
  return Fence{static_cast<uint64_t>(stream) << kNumberBits | number};
}
uint64_t NumberOf(Fence fence) {
  return static_cast<uint64_t>(fence) & kNumberMask;
}

}  // namespace

absl::StatusOr<StreamHandle> StreamSet::Create() {
  absl::MutexLock lock(&mutex_);
  size_t i = 0;
  while (i < entries_.size() && entries_[i].stream != nullptr) ++i;
  if (i == kMaxStreams) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMaxStreams, " streams"));
  }
  const uint64_t last = i < entries_.size() ? entries_[i].last_number : 0;
  METS_ASSIGN_OR_RETURN(std::unique_ptr<HostStream> stream,
                        HostStream::Start(last));
  if (i == entries_.size()) entries_.emplace_back();
  entries_[i].stream = std::move(stream);
  return StreamHandle{i + 1};
}

void StreamSet::Destroy(StreamHandle stream) {
  absl::StatusOr<std::shared_ptr<HostStream>> found = Find(stream);
  if (!found.ok()) return;
  const uint64_t last = (*found)->last_number();
  // Not under the lock: the stream's own tasks may wait for other streams.
  (void)(*found)->Wait(last);
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[static_cast<uint64_t>(stream) - 1];
  entry.last_number = last;
  entry.stream = nullptr;
}

absl::StatusOr<Fence> StreamSet::Submit(StreamHandle stream,
                                        HostStream::Task task) {
  if (stream == StreamHandle::kHostOrder) {
    METS_RETURN_IF_ERROR(task());
    return Fence::kPassed;
  }
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, Find(stream));
  return MakeFence(stream, found->Submit(std::move(task)));
}

absl::StatusOr<Fence> StreamSet::Record(StreamHandle stream) {
  if (stream == StreamHandle::kHostOrder) return Fence::kPassed;
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, Find(stream));
  return MakeFence(stream, found->Record());
}

absl::StatusOr<bool> StreamSet::IsIdle(StreamHandle stream) {
  if (stream == StreamHandle::kHostOrder) return true;
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, Find(stream));
  return found->Poll(found->last_number());
}

absl::StatusOr<bool> StreamSet::Poll(Fence fence) {
  if (fence == Fence::kPassed) return true;
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, FindFor(fence));
  return found == nullptr ? true : found->Poll(NumberOf(fence));
}

absl::Status StreamSet::Wait(Fence fence) {
  if (fence == Fence::kPassed) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, FindFor(fence));
  return found == nullptr ? absl::OkStatus() : found->Wait(NumberOf(fence));
}

absl::Status StreamSet::StreamWait(StreamHandle stream, Fence fence) {
  if (stream == StreamHandle::kHostOrder) {
    (void)Wait(fence);
    return absl::OkStatus();
  }
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> found, Find(stream));
  if (fence == Fence::kPassed) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(std::shared_ptr<HostStream> other, FindFor(fence));
  if (other == nullptr || other == found) return absl::OkStatus();
  // The error of what comes before the fence is not an error of this stream.
  found->Submit([other, number = NumberOf(fence)] {
    (void)other->Wait(number);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<HostStream>> StreamSet::Find(
    StreamHandle handle) {
  const uint64_t index = static_cast<uint64_t>(handle);
  absl::MutexLock lock(&mutex_);
  if (index == 0 || index > entries_.size() ||
      entries_[index - 1].stream == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no stream ", index));
  }
  return entries_[index - 1].stream;
}

absl::StatusOr<std::shared_ptr<HostStream>> StreamSet::FindFor(Fence fence) {
  const uint64_t index = static_cast<uint64_t>(fence) >> kNumberBits;
  const uint64_t number = NumberOf(fence);
  absl::MutexLock lock(&mutex_);
  if (index == 0 || index > entries_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no fence ", static_cast<uint64_t>(fence)));
  }
  const Entry& entry = entries_[index - 1];
  if (number <= entry.last_number) return nullptr;
  if (entry.stream == nullptr || number > entry.stream->last_number()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no fence ", static_cast<uint64_t>(fence)));
  }
  return entry.stream;
}

}  // namespace mets
