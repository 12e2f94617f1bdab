// StreamSet: the streams and fences of a host device.
#ifndef METS_COMMON_DEVICE_HOST_STREAM_SET_H_
#define METS_COMMON_DEVICE_HOST_STREAM_SET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/device/host/host_stream.h"
#include "common/device/map_driver.h"

namespace mets {

// Streams by handle, and fences: (stream's index, task number) in 64 bits.
// A destroyed stream's fences have passed; an index that is used again goes on
// counting, so that old fences stay passed.
//
// Host order runs its tasks in the calling thread, at once; its fences have
// passed, and an error comes from Submit.
//
// Thread-safe; the calls have the meaning of MapDriver's.
class StreamSet {
 public:
  absl::StatusOr<StreamHandle> Create();
  void Destroy(StreamHandle stream);
  absl::StatusOr<Fence> Submit(StreamHandle stream, HostStream::Task task);
  absl::StatusOr<Fence> Record(StreamHandle stream);
  absl::StatusOr<bool> IsIdle(StreamHandle stream);
  absl::StatusOr<bool> Poll(Fence fence);
  absl::Status Wait(Fence fence);
  // On host order this waits.
  absl::Status StreamWait(StreamHandle stream, Fence fence);

 private:
  struct Entry {
    // Shared with calls that wait for a stream while it is being destroyed.
    std::shared_ptr<HostStream> stream;
    uint64_t last_number = 0;  // Of the index's earlier streams.
  };

  absl::StatusOr<std::shared_ptr<HostStream>> Find(StreamHandle handle);
  // nullptr when the fence has passed because its stream is gone.
  absl::StatusOr<std::shared_ptr<HostStream>> FindFor(Fence fence);

  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // By index - 1.
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_STREAM_SET_H_
