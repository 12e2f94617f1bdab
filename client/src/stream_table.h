// StreamTable: the program's streams that libmets has been told of.
#ifndef METS_CLIENT_SRC_STREAM_TABLE_H_
#define METS_CLIENT_SRC_STREAM_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
// Nothing is recorded before somebody asks: a set of streams stands for the
// work that is on them when Wait or Order is called.
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

  // Blocks until the work that is on `streams` now has passed. An error is the
  // end of the program's context: nothing runs there any more.
  absl::Status Wait(StreamMask streams);
  // Work that comes on `stream` later starts after what is on `others` now.
  // Blocks only in host order.
  void Order(const Stream& stream, StreamMask others);

 private:
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

  MapDriver& driver_;
  std::array<Place, kPlaces> places_;  // Open addressing.
  std::atomic<StreamMask> all_{0};
  std::atomic<bool> logged_{false};
  absl::Mutex mutex_;  // Of who adds; a leaf.
  std::vector<StreamHandle> handles_ ABSL_GUARDED_BY(mutex_);  // Bit by bit.
  absl::flat_hash_map<mets_stream, Stream> late_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_STREAM_TABLE_H_
