// MapDriver: a client process's view of one device: address ranges, mappings,
// streams and copies.
#ifndef METS_COMMON_DEVICE_MAP_DRIVER_H_
#define METS_COMMON_DEVICE_MAP_DRIVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"

namespace mets {

// A chunk that this process has imported. Value 0 is no chunk.
enum class ChunkHandle : uint32_t { kNone = 0 };
// A swap extent that this process has registered. Value 0 is no extent.
enum class ExtentHandle : uint32_t { kNone = 0 };
// A stream on which copies run in order. Value 0 is host order: the calling
// thread's own order.
enum class StreamHandle : uint64_t { kHostOrder = 0 };
// A point in a stream. Fences are values, and need not be destroyed; value 0
// has always passed.
enum class Fence : uint64_t { kPassed = 0 };
// A moment by the device's own clock. Null: none. Ends before its driver.
using TimeMark = std::shared_ptr<void>;

// A contiguous part of an extent.
struct ExtentPiece {
  ExtentHandle extent = ExtentHandle::kNone;
  Bytes offset;
  Bytes size;
};

struct MapDriverInfo {
  std::string kind;
  // Ranges are aligned to, and their sizes are multiples of, this.
  Bytes granularity;
  // Allocations below this size are carved from slabs.
  Bytes slab_threshold;
  // Moves each way that are worth having under way at a time: more than one
  // where something else copies while the CPU maps.
  int moves;
  // What Unmap leaves in place makes mapping the same chunks there cost
  // nothing: they are worth having again.
  bool keeps_mappings = false;
};

// Maps chunks into address ranges of this process and moves bytes between
// ranges and extents.
//
// Ranges lie in one reserved region per driver, [region_begin, region_end), so
// that a caller can find a buffer from an address with one table look-up.
// A range has no accessible memory until Map or CopyIn. Chunks keep their
// contents while unmapped.
//
// Thread-safe; calls on one range must not overlap in time, except that Find
// and reads of its memory may. No call waits for another process. A failed
// call leaves range, chunks and extents as they were.
class MapDriver {
 public:
  virtual ~MapDriver() = default;

  virtual MapDriverInfo info() const = 0;
  virtual char* region_begin() const = 0;
  virtual char* region_end() const = 0;

  // --- chunks and extents -------------------------------------------------

  // Imports a chunk of `size` bytes. The driver may keep helper mappings of it
  // that make later copies fast.
  virtual absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) = 0;

  // Drops the descriptor and every helper mapping, and waits for what
  // UnmapAfter still has to do. REQUIRES: the chunk is mapped in no other range.
  virtual void ForgetChunk(ChunkHandle chunk) = 0;

  // Makes an extent of `size` bytes ready for copies.
  virtual absl::StatusOr<ExtentHandle> RegisterExtent(UniqueFd fd,
                                                      Bytes size) = 0;
  // REQUIRES: no copy that names the extent is under way.
  virtual void ForgetExtent(ExtentHandle extent) = 0;

  // --- ranges -------------------------------------------------------------

  // Reserves `size` bytes of addresses, without memory behind them.
  virtual absl::StatusOr<char*> ReserveRange(Bytes size) = 0;
  // The same for chunks that are to be mapped there, of `size` together: where
  // they are mapped already, if the driver has kept such a range.
  virtual absl::StatusOr<char*> ReserveRangeFor(
      absl::Span<const ChunkHandle> chunks, Bytes size) {
    (void)chunks;
    return ReserveRange(size);
  }
  // REQUIRES: nothing is mapped in the range.
  virtual void ReleaseRange(char* range, Bytes size) = 0;

  // Maps `chunks`, in order, at the beginning of `range`; accessible at once.
  // Their contents are what they were (zero when fresh).
  virtual absl::Status Map(char* range,
                           absl::Span<const ChunkHandle> chunks) = 0;

  // Unmaps the chunks of `range`, which nobody touches any more; where accesses
  // can be stopped it has no accessible memory afterwards. Where they cannot
  // (CUDA), the mapping may stay until something else is mapped there, or one of
  // the chunks is forgotten. `chunks` as given to Map or CopyIn.
  virtual absl::Status Unmap(char* range,
                             absl::Span<const ChunkHandle> chunks) = 0;

  // Unmaps the range once `after` has passed, as Unmap does, and releases it;
  // what is under way may touch it until then. The chunks may be mapped
  // elsewhere at once.
  virtual absl::Status UnmapAfter(absl::Span<const Fence> after, char* range,
                                  absl::Span<const ChunkHandle> chunks) = 0;

  // Stops accesses to a mapped range, while copies out of it are still
  // possible, so that an access nobody announced cannot change it unnoticed:
  // writes fault; reads fault or are served (host devices: both fault, and
  // CopyOut of a blocked range is the fast one; CUDA cannot block and does
  // nothing). Undone by AllowAccess or Unmap. All three may be called while a
  // CopyOut of the range is under way. Blocking or allowing twice is no error.
  virtual absl::Status BlockAccess(char* range,
                                   absl::Span<const ChunkHandle> chunks) = 0;
  virtual absl::Status AllowAccess(char* range,
                                   absl::Span<const ChunkHandle> chunks) = 0;

  // Makes a mapped range read-only, or writable again: the program's writes
  // fault meanwhile (CUDA: only where the driver can do that, which is no
  // error). Undone by Unmap. REQUIRES: the range is not blocked.
  virtual absl::Status SetReadOnly(char* range,
                                   absl::Span<const ChunkHandle> chunks,
                                   bool read_only) = 0;

  // --- copies -------------------------------------------------------------

  // Copies the first `size` bytes of a mapped (perhaps blocked) range to
  // `slot`, on `stream`. The range stays mapped. Returns the fence after which
  // the slot holds the bytes; an error of the copy itself comes from Wait.
  virtual absl::StatusOr<Fence> CopyOut(char* range,
                                        absl::Span<const ChunkHandle> chunks,
                                        absl::Span<const ExtentPiece> slot,
                                        Bytes size, StreamHandle stream) = 0;

  // Maps `chunks` at `range` with the first `size` bytes read from `slot`:
  // once the returned fence has passed, the range is accessible and complete;
  // before, no reader sees half of it. When Wait on the fence returns an
  // error, nothing is mapped.
  virtual absl::StatusOr<Fence> CopyIn(char* range,
                                       absl::Span<const ChunkHandle> chunks,
                                       absl::Span<const ExtentPiece> slot,
                                       Bytes size, StreamHandle stream) = 0;

  // --- streams ------------------------------------------------------------

  virtual absl::StatusOr<StreamHandle> CreateStream() = 0;
  // A handle for a stream that the program has made (CUDA: a CUstream of the
  // device's primary context), so that Record and StreamWait know it; null is
  // host order. The same stream has the same handle until DestroyStream, which
  // forgets it and does not end it. UNIMPLEMENTED for any but null where the
  // program has no streams (host devices). REQUIRES: the stream lives until
  // then.
  virtual absl::StatusOr<StreamHandle> AdoptStream(void* stream) = 0;
  // Waits for the stream's work.
  virtual void DestroyStream(StreamHandle stream) = 0;
  // A fence behind all work that is on `stream` now.
  virtual absl::StatusOr<Fence> Record(StreamHandle stream) = 0;
  // Whether nothing is left on `stream`; or an error of what was. One that
  // captures a graph (CUDA) is not idle.
  virtual absl::StatusOr<bool> IsIdle(StreamHandle stream) = 0;
  // True when everything before `fence` has finished. An error, once it has,
  // of the copy that returned the fence; a fence of Record has the first error
  // since the stream's last Record. Fences of destroyed streams have passed.
  virtual absl::StatusOr<bool> Poll(Fence fence) = 0;
  // Blocks until `fence` has passed; errors as Poll's.
  virtual absl::Status Wait(Fence fence) = 0;
  // Later work on `stream` starts after `fence`, whatever its error. Does not
  // block, except in host order, which has no other way.
  virtual absl::Status StreamWait(StreamHandle stream, Fence fence) = 0;

  // When the work is done that is on `stream` now. Null where the device has no
  // clock of its own.
  virtual TimeMark MarkTime(StreamHandle stream) {
    (void)stream;
    return nullptr;
  }
  // Blocks until both have passed. Errors are those of the work before them.
  virtual absl::StatusOr<absl::Duration> TimeBetween(const TimeMark& from,
                                                     const TimeMark& to) {
    (void)from;
    (void)to;
    return absl::UnimplementedError("the device has no clock");
  }
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_MAP_DRIVER_H_
