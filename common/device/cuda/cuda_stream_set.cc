#include "common/device/cuda/cuda_stream_set.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr int kNumberBits = 48;
constexpr uint64_t kNumberMask = (uint64_t{1} << kNumberBits) - 1;
constexpr size_t kMaxStreams = (size_t{1} << (64 - kNumberBits)) - 1;
constexpr size_t kMaxFailures = 1024;
constexpr size_t kManyPoints = 64;

Fence MakeFence(StreamHandle stream, uint64_t number) {
  return Fence{static_cast<uint64_t>(stream) << kNumberBits | number};
}
uint64_t NumberOf(Fence fence) {
  return static_cast<uint64_t>(fence) & kNumberMask;
}
StreamHandle StreamOf(Fence fence) {
  return StreamHandle{static_cast<uint64_t>(fence) >> kNumberBits};
}

absl::Status NoFence(Fence fence) {
  return absl::InvalidArgumentError(
      absl::StrCat("no fence ", static_cast<uint64_t>(fence)));
}

}  // namespace

CudaStreamSet::~CudaStreamSet() {
  size_t count;
  {
    absl::MutexLock lock(&mutex_);
    count = entries_.size();
  }
  for (size_t i = 1; i <= count; ++i) Destroy(StreamHandle{i});
}

absl::StatusOr<StreamHandle> CudaStreamSet::Create() {
  CUstream stream;
  METS_RETURN_IF_ERROR(api_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  absl::StatusOr<StreamHandle> handle = Add(stream, /*own=*/true);
  if (!handle.ok()) api_.cuStreamDestroy(stream).IgnoreError();
  return handle;
}

absl::StatusOr<StreamHandle> CudaStreamSet::Adopt(CUstream stream) {
  return Add(stream, /*own=*/false);
}

absl::StatusOr<StreamHandle> CudaStreamSet::Add(CUstream stream, bool own) {
  absl::MutexLock lock(&mutex_);
  if (!own) {
    const auto known = adopted_.find(stream);
    if (known != adopted_.end()) return known->second;
  }
  size_t i = 0;
  while (i < entries_.size() && entries_[i].live) ++i;
  if (i == kMaxStreams) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMaxStreams, " streams"));
  }
  if (i == entries_.size()) entries_.emplace_back();
  Entry& entry = entries_[i];
  entry.stream = stream;
  entry.live = true;
  entry.own = own;
  if (!own) adopted_[stream] = StreamHandle{i + 1};
  return StreamHandle{i + 1};
}

void CudaStreamSet::Destroy(StreamHandle handle) {
  const absl::StatusOr<CUstream> stream = Find(handle);
  if (!stream.ok()) return;
  const absl::Status result = api_.cuStreamSynchronize(*stream);
  Fence last;
  bool own;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[static_cast<uint64_t>(handle) - 1];
    last = MakeFence(handle, entry.last);
    own = entry.own;
  }
  Settle(last, result).IgnoreError();
  if (own) api_.cuStreamDestroy(*stream).IgnoreError();
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[static_cast<uint64_t>(handle) - 1];
  if (!own) adopted_.erase(*stream);
  entry.live = false;
  entry.failures.clear();
}

absl::StatusOr<CudaStreamSet::Entry*> CudaStreamSet::EntryOf(
    StreamHandle stream) {
  const uint64_t index = static_cast<uint64_t>(stream);
  if (index == 0 || index > entries_.size() || !entries_[index - 1].live) {
    return absl::InvalidArgumentError(absl::StrCat("no stream ", index));
  }
  return &entries_[index - 1];
}

absl::StatusOr<CudaStreamSet::Entry*> CudaStreamSet::EntryOf(Fence fence) {
  const uint64_t index = static_cast<uint64_t>(StreamOf(fence));
  if (index == 0 || index > entries_.size() ||
      NumberOf(fence) > entries_[index - 1].last) {
    return NoFence(fence);
  }
  return &entries_[index - 1];
}

absl::StatusOr<CUstream> CudaStreamSet::Find(StreamHandle stream) {
  absl::MutexLock lock(&mutex_);
  METS_ASSIGN_OR_RETURN(const Entry* entry, EntryOf(stream));
  return entry->stream;
}

absl::StatusOr<Fence> CudaStreamSet::Record(StreamHandle stream,
                                            std::function<void()> undo) {
  METS_ASSIGN_OR_RETURN(CudaEvents::Event event, events_.Take());
  Entry* entry;
  {
    absl::MutexLock lock(&mutex_);
    METS_ASSIGN_OR_RETURN(entry, EntryOf(stream));
  }
  Fence fence;
  Fence old = Fence::kPassed;
  {
    // Numbers are in the order of the events. The call blocks while the stream
    // has no room.
    absl::MutexLock order(&entry->order);
    METS_RETURN_IF_ERROR(api_.cuEventRecord(event.get(), entry->stream));
    absl::MutexLock lock(&mutex_);
    entry->points.push_back({++entry->last, std::move(event), std::move(undo)});
    fence = MakeFence(stream, entry->last);
    if (entry->points.size() > kManyPoints) {
      old = MakeFence(stream, entry->passed + kManyPoints / 2);
    }
  }
  // Nobody may ever ask for some fences.
  Poll(old).status().IgnoreError();
  return fence;
}

absl::Status CudaStreamSet::ErrorOf(const Entry& entry, uint64_t number) {
  const auto failure = entry.failures.find(number);
  return failure == entry.failures.end() ? absl::OkStatus() : failure->second;
}

absl::StatusOr<CudaStreamSet::State> CudaStreamSet::StateOf(Fence fence) {
  const uint64_t number = NumberOf(fence);
  absl::MutexLock lock(&mutex_);
  METS_ASSIGN_OR_RETURN(const Entry* entry, EntryOf(fence));
  if (number <= entry->passed) return State{nullptr, ErrorOf(*entry, number)};
  return State{entry->points[number - entry->passed - 1].event, {}};
}

absl::Status CudaStreamSet::Settle(Fence fence, const absl::Status& result) {
  const uint64_t number = NumberOf(fence);
  std::vector<Point> over;  // Ends after the lock.
  absl::Status error;
  {
    absl::MutexLock lock(&mutex_);
    METS_ASSIGN_OR_RETURN(Entry * entry, EntryOf(fence));
    while (entry->passed < number) {
      over.push_back(std::move(entry->points.front()));
      entry->points.pop_front();
      ++entry->passed;
      if (result.ok()) continue;
      entry->failures.emplace(entry->passed, result);
      if (entry->failures.size() > kMaxFailures) {
        entry->failures.erase(entry->failures.begin());
      }
    }
    error = ErrorOf(*entry, number);
  }
  for (Point& point : over) {
    if (!result.ok() && point.undo != nullptr) point.undo();
  }
  return error;
}

absl::StatusOr<bool> CudaStreamSet::IsIdle(StreamHandle handle) {
  METS_ASSIGN_OR_RETURN(const CUstream stream, Find(handle));
  // To ask for its work would end the program's capture.
  CUstreamCaptureStatus capture;
  METS_RETURN_IF_ERROR(api_.cuStreamIsCapturing(stream, &capture));
  if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return false;
  const CUresult result = api_.cuStreamQuery.call(stream);
  if (result == CUDA_ERROR_NOT_READY) return false;
  METS_RETURN_IF_ERROR(CudaStatus(result, api_.cuStreamQuery.name));
  return true;
}

absl::StatusOr<bool> CudaStreamSet::Poll(Fence fence) {
  if (fence == Fence::kPassed) return true;
  METS_ASSIGN_OR_RETURN(const State state, StateOf(fence));
  METS_RETURN_IF_ERROR(state.error);
  if (state.event == nullptr) return true;
  const CUresult result = api_.cuEventQuery.call(state.event.get());
  if (result == CUDA_ERROR_NOT_READY) return false;
  METS_RETURN_IF_ERROR(
      Settle(fence, CudaStatus(result, api_.cuEventQuery.name)));
  return true;
}

absl::Status CudaStreamSet::Wait(Fence fence) {
  if (fence == Fence::kPassed) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(const State state, StateOf(fence));
  if (state.event == nullptr) return state.error;
  return Settle(fence, CudaStatus(events_.Wait(state.event.get()),
                                  api_.cuEventQuery.name));
}

absl::Status CudaStreamSet::StreamWait(StreamHandle handle, Fence fence) {
  METS_ASSIGN_OR_RETURN(const CUstream stream, Find(handle));
  if (fence == Fence::kPassed) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(const State state, StateOf(fence));
  if (state.event == nullptr) return absl::OkStatus();
  return api_.cuStreamWaitEvent(stream, state.event.get(),
                                CU_EVENT_WAIT_DEFAULT);
}

}  // namespace mets
