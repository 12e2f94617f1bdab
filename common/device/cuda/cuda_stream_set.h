// CudaStreamSet: the streams and fences of a GPU in this process.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_STREAM_SET_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_STREAM_SET_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_events.h"
#include "common/device/map_driver.h"

namespace mets {

// Streams by handle: our own, and the program's, which it has told us of.
// Fences are (stream's index, number) in 64 bits; each has an event until it
// has passed, and the numbers of a stream pass in order. A forgotten stream's
// fences have passed; an index that is used again goes on counting.
//
// A fence that has failed keeps its error. (The driver's errors end a context:
// they come from every later call, too.)
//
// Thread-safe; the calls have the meaning of MapDriver's. Host order is the
// caller's business, except for fences of value 0. The caller is in the
// context, also at destruction, which waits for our own streams.
class CudaStreamSet {
 public:
  explicit CudaStreamSet(const CudaApi& api) : api_(api), events_(api) {}
  ~CudaStreamSet();

  absl::StatusOr<StreamHandle> Create();
  // The same stream has the same handle until it is destroyed.
  absl::StatusOr<StreamHandle> Adopt(CUstream stream);
  // Leaves a stream of the program as it is, except that it waits for it.
  void Destroy(StreamHandle stream);

  // The driver's stream. INVALID_ARGUMENT when there is none.
  absl::StatusOr<CUstream> Find(StreamHandle stream);

  // A fence behind the stream's work. `undo`, if any, runs once in the thread
  // that learns that what is before the fence has failed.
  absl::StatusOr<Fence> Record(StreamHandle stream,
                               std::function<void()> undo = nullptr);
  absl::StatusOr<bool> IsIdle(StreamHandle stream);
  absl::StatusOr<bool> Poll(Fence fence);
  absl::Status Wait(Fence fence);
  absl::Status StreamWait(StreamHandle stream, Fence fence);

 private:
  struct Point {
    uint64_t number;
    CudaEvents::Event event;
    std::function<void()> undo;
  };
  struct Entry {
    absl::Mutex order;  // Held while a fence gets its place. Before mutex_.
    CUstream stream = nullptr;
    bool live = false;
    bool own = false;
    uint64_t last = 0;         // The number given last.
    uint64_t passed = 0;       // All up to here have.
    std::deque<Point> points;  // Numbers passed + 1 to last.
    std::map<uint64_t, absl::Status> failures;
  };
  struct State {
    CudaEvents::Event event;  // Null when it has passed.
    absl::Status error;       // Of one that has passed.
  };

  absl::StatusOr<StreamHandle> Add(CUstream stream, bool own);
  absl::StatusOr<Entry*> EntryOf(StreamHandle stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Entry*> EntryOf(Fence fence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status ErrorOf(const Entry& entry, uint64_t number);
  // INVALID_ARGUMENT when there is no such fence.
  absl::StatusOr<State> StateOf(Fence fence);
  // What is up to the fence is over, with this result. Returns it.
  absl::Status Settle(Fence fence, const absl::Status& result);

  const CudaApi& api_;
  CudaEvents events_;
  absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // By index - 1.
  absl::flat_hash_map<CUstream, StreamHandle> adopted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_STREAM_SET_H_
