#include "common/device/slow_driver.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

// What a copy's arguments name, kept until the copy runs.
struct Copy {
  char* range;
  std::vector<ChunkHandle> chunks;
  std::vector<ExtentPiece> slot;
  Bytes size;
};

Copy Keep(char* range, absl::Span<const ChunkHandle> chunks,
          absl::Span<const ExtentPiece> slot, Bytes size) {
  return {
      range, {chunks.begin(), chunks.end()}, {slot.begin(), slot.end()}, size};
}

}  // namespace

SlowMapDriver::SlowMapDriver(std::unique_ptr<MapDriver> inner, BusSpeed speed)
    : ForwardingMapDriver(std::move(inner)), speed_(speed) {}

absl::StatusOr<Fence> SlowMapDriver::CopyOut(
    char* range, absl::Span<const ChunkHandle> chunks,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  return streams_.Submit(stream,
                         [this, copy = Keep(range, chunks, slot, size)] {
                           const absl::Time end = Book(out_, copy.size);
                           const absl::Status status =
                               inner()
                                   .CopyOut(copy.range, copy.chunks, copy.slot,
                                            copy.size, StreamHandle::kHostOrder)
                                   .status();
                           if (status.ok()) absl::SleepFor(end - clock_.Now());
                           return status;
                         });
}

absl::StatusOr<Fence> SlowMapDriver::CopyIn(
    char* range, absl::Span<const ChunkHandle> chunks,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  return streams_.Submit(stream,
                         [this, copy = Keep(range, chunks, slot, size)] {
                           // Before the copy, which makes the range accessible.
                           absl::SleepFor(Book(in_, copy.size) - clock_.Now());
                           return inner()
                               .CopyIn(copy.range, copy.chunks, copy.slot,
                                       copy.size, StreamHandle::kHostOrder)
                               .status();
                         });
}

absl::Time SlowMapDriver::Book(Lane& lane, Bytes size) {
  absl::Duration duration;
  if (!speed_.bytes_per_second.is_zero()) {
    duration = absl::Seconds(static_cast<double>(size.count()) /
                             speed_.bytes_per_second.count());
  }
  absl::MutexLock lock(&lane.mutex);
  lane.free_at = std::max(lane.free_at, clock_.Now()) + duration;
  return lane.free_at + speed_.latency;
}

absl::StatusOr<StreamHandle> SlowMapDriver::CreateStream() {
  return streams_.Create();
}
void SlowMapDriver::DestroyStream(StreamHandle stream) {
  streams_.Destroy(stream);
}
absl::StatusOr<Fence> SlowMapDriver::Record(StreamHandle stream) {
  return streams_.Record(stream);
}
absl::StatusOr<bool> SlowMapDriver::IsIdle(StreamHandle stream) {
  return streams_.IsIdle(stream);
}
absl::StatusOr<bool> SlowMapDriver::Poll(Fence fence) {
  return streams_.Poll(fence);
}
absl::Status SlowMapDriver::UnmapAfter(absl::Span<const Fence> after,
                                       char* range,
                                       absl::Span<const ChunkHandle> chunks) {
  for (Fence fence : after) METS_RETURN_IF_ERROR(Wait(fence));
  return inner().UnmapAfter({}, range, chunks);
}

absl::Status SlowMapDriver::Wait(Fence fence) { return streams_.Wait(fence); }
absl::Status SlowMapDriver::StreamWait(StreamHandle stream, Fence fence) {
  return streams_.StreamWait(stream, fence);
}

}  // namespace mets
