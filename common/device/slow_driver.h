// SlowMapDriver: another MapDriver behind a bus of a given speed.
#ifndef METS_COMMON_DEVICE_SLOW_DRIVER_H_
#define METS_COMMON_DEVICE_SLOW_DRIVER_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/stream_set.h"

namespace mets {

// What a bus can do, each way: both directions do not disturb each other, the
// copies of one direction share its bandwidth, one after the other.
struct BusSpeed {
  Bytes bytes_per_second;  // Zero: not limited.
  absl::Duration latency;  // Of each copy; does not keep others waiting.
};

// Copies take at least as long as the bus needs; everything else is the inner
// driver's. Streams are this object's own threads, so that an error in a
// stream's copy comes from the fence. Thread-safe.
class SlowMapDriver : public ForwardingMapDriver {
 public:
  SlowMapDriver(std::unique_ptr<MapDriver> inner, BusSpeed speed);

  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override;
  absl::StatusOr<Fence> CopyIn(char* range,
                               absl::Span<const ChunkHandle> chunks,
                               absl::Span<const ExtentPiece> slot, Bytes size,
                               StreamHandle stream) override;

  absl::StatusOr<StreamHandle> CreateStream() override;
  void DestroyStream(StreamHandle stream) override;
  absl::StatusOr<Fence> Record(StreamHandle stream) override;
  absl::StatusOr<bool> IsIdle(StreamHandle stream) override;
  absl::StatusOr<bool> Poll(Fence fence) override;
  absl::Status UnmapAfter(absl::Span<const Fence> after, char* range,
                          absl::Span<const ChunkHandle> chunks) override;
  absl::Status Wait(Fence fence) override;
  absl::Status StreamWait(StreamHandle stream, Fence fence) override;

 private:
  // One direction of the bus.
  struct Lane {
    absl::Mutex mutex;
    absl::Time free_at ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  };

  // Takes the lane for a copy of `size`; when that ends.
  absl::Time Book(Lane& lane, Bytes size);

  const BusSpeed speed_;
  const RealClock clock_;
  Lane out_;
  Lane in_;
  StreamSet streams_;  // Last: its work ends before the rest goes.
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_SLOW_DRIVER_H_
