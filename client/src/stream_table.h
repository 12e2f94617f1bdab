// StreamTable: the program's streams that libmets has been told of.
#ifndef METS_CLIENT_SRC_STREAM_TABLE_H_
#define METS_CLIENT_SRC_STREAM_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/include/mets/mets.h"
#include "common/device/map_driver.h"

namespace mets::client {

// A set of streams, one bit each. The last bit is shared by all that came after
// the others had been given away, and stands for every stream that is known.
using StreamMask = uint64_t;
inline constexpr StreamMask kSharedBit = StreamMask{1} << 63;

// A stream; the default is host order, which is in no set.
struct Stream {
  StreamHandle handle = StreamHandle::kHostOrder;
  StreamMask bit = 0;

  // Those of a set that this stream is not in order with by itself.
  StreamMask Others(StreamMask streams) const {
    return bit == kSharedBit ? streams : streams & ~bit;
  }
};

// Streams of one device, in the order in which they were first named. They are
// never forgotten, so each must live as long as the device.
//
// A set of streams stands for the work that was on them at a *moment*, which
// whoever added work has read afterwards. Who waits for it waits for what Mark
// recorded next, at the latest for what is there now: a program may be far
// ahead of its device, and what it has added since is not waited for in vain.
//
// Thread-safe; finding one of the first 63 takes no lock. `driver` must outlive
// it.
class StreamTable {
 public:
  explicit StreamTable(MapDriver& driver) : driver_(driver) {}
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  // Null is host order. INVALID_ARGUMENT for others where the program has no
  // streams (host devices).
  absl::StatusOr<Stream> Find(mets_stream stream) {
    if (stream == nullptr) return Stream();
    return FindOwn(stream);
  }
  // Find for callers that cannot fail: errors are host order, and said once.
  Stream FindOrHost(mets_stream stream) {
    return stream == nullptr ? Stream() : FindOrLog(stream);
  }

  // All that are known.
  StreamMask all() const { return all_.load(std::memory_order_acquire); }

  using Moment = uint64_t;
  static constexpr Moment kNow = ~Moment{0};
  Moment moment() const { return begun_.load(); }
  // Records what is on all streams, unless that was just done.
  void Mark();

  // Fences behind the work that was on `streams` then. An error, which is the
  // end of the program's context, is in `status`: nothing runs there any more.
  // None is recorded for `except`.
  std::vector<Fence> Fences(StreamMask streams, Moment then,
                            absl::Status* status,
                            StreamHandle except = StreamHandle::kHostOrder);
  // Whether nothing is left on any of them. Does not block.
  bool Idle();
  // Blocks until the work that was on `streams` then has passed, or the error.
  absl::Status Wait(StreamMask streams, Moment then = kNow);
  // Work that comes on `stream` later starts after what was on `others` then.
  // Blocks only in host order.
  void Order(const Stream& stream, StreamMask others, Moment then = kNow);

 private:
  struct Marked {
    Moment number;              // moment() was less before.
    std::vector<Fence> fences;  // Stream by stream.
  };
  static constexpr int kOwnBits = 63;
  static constexpr size_t kPlaces = 128;  // A power of two.
  struct Place {
    std::atomic<mets_stream> stream{nullptr};
    Stream value;  // Written before `stream`.
  };

  static size_t FirstPlace(mets_stream stream);
  absl::StatusOr<Stream> FindOwn(mets_stream stream);
  absl::StatusOr<Stream> Add(mets_stream stream);
  Stream FindOrLog(mets_stream stream);
  std::vector<StreamHandle> HandlesOf(StreamMask streams);
  // Behind what is there now.
  std::vector<Fence> Record(StreamMask streams, absl::Status* status,
                            StreamHandle except = StreamHandle::kHostOrder);

  MapDriver& driver_;
  std::array<Place, kPlaces> places_;  // Open addressing.
  std::atomic<StreamMask> all_{0};
  std::atomic<bool> logged_{false};
  absl::Mutex mutex_;  // Of who adds; a leaf.
  std::vector<StreamHandle> handles_ ABSL_GUARDED_BY(mutex_);  // Bit by bit.
  absl::flat_hash_map<mets_stream, Stream> late_ ABSL_GUARDED_BY(mutex_);

  std::atomic<Moment> begun_{0};  // Marks.
  std::atomic<int64_t> marked_ns_{0};
  absl::Mutex marking_;  // Of who marks.
  absl::Mutex marks_mutex_;  // A leaf.
  std::deque<Marked> marks_ ABSL_GUARDED_BY(marks_mutex_);  // The last ones.
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_STREAM_TABLE_H_
