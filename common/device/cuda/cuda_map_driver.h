// CudaMapDriver: MapDriver of a GPU.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_MAP_DRIVER_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_MAP_DRIVER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_chunk_table.h"
#include "common/device/cuda/cuda_context.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cuda_extent.h"
#include "common/device/cuda/cuda_kept_mappings.h"
#include "common/device/cuda/cuda_stream_set.h"
#include "common/device/extent_table.h"
#include "common/device/map_driver.h"
#include "common/device/range_allocator.h"

namespace mets {

struct CudaMapOptions {
  // Addresses for ranges. Only addresses: no memory is used for them.
  Bytes region_size = GiB(1024);
};

// Chunks are the driver's physical allocations, mapped where the program's
// kernels find them; copies run on the device's copy engines. It works in the
// process's primary context, which it makes if there is none.
//
// Differences from a host device. BlockAccess and AllowAccess do nothing: an
// access that nobody announced is not noticed. CopyIn maps at once; its fence
// says when the bytes are complete, and until then only METS's own order keeps
// readers away. Whoever copies out or unmaps sees to it that the work which
// uses the range is done: the calls wait for nothing on the device, and nothing
// on the device waits for them. An error of a copy is the context's end.
//
// While a stream has copies out waiting, the driver's own small copies (for
// every access that is set) wait some 0.5 ms, and the program's in that
// direction until the last of them (docs/decisions/0014-plain-copies.md).
//
// Copies in host order go to streams of the driver, one for each direction, and
// are complete when the call returns. A forked child must not use the driver.
// Thread-safe as MapDriver says. REQUIRES at destruction: nothing uses a range
// any more.
class CudaMapDriver : public MapDriver {
 public:
  // `api` must outlive the driver. RESOURCE_EXHAUSTED when there is no memory
  // for a context, or the process has not enough addresses (a region of at
  // least 8 GiB is tried, by halves).
  static absl::StatusOr<std::unique_ptr<CudaMapDriver>> Create(
      const CudaApi& api, const CudaDevice& device, CudaMapOptions options);
  ~CudaMapDriver() override;

  MapDriverInfo info() const override;
  char* region_begin() const override { return begin_; }
  char* region_end() const override { return begin_ + size_.count(); }

  absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) override;
  void ForgetChunk(ChunkHandle chunk) override;
  absl::StatusOr<ExtentHandle> RegisterExtent(UniqueFd fd, Bytes size) override;
  void ForgetExtent(ExtentHandle extent) override;

  absl::StatusOr<char*> ReserveRange(Bytes size) override;
  absl::StatusOr<char*> ReserveRangeFor(absl::Span<const ChunkHandle> chunks,
                                        Bytes size) override;
  void ReleaseRange(char* range, Bytes size) override;
  absl::Status Map(char* range, absl::Span<const ChunkHandle> chunks) override;
  absl::Status Unmap(char* range,
                     absl::Span<const ChunkHandle> chunks) override;
  absl::Status UnmapAfter(absl::Span<const Fence> after, char* range,
                          absl::Span<const ChunkHandle> chunks) override;
  absl::Status BlockAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override;
  absl::Status AllowAccess(char* range,
                           absl::Span<const ChunkHandle> chunks) override;
  absl::Status SetReadOnly(char* range, absl::Span<const ChunkHandle> chunks,
                           bool read_only) override;

  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override;
  absl::StatusOr<Fence> CopyIn(char* range,
                               absl::Span<const ChunkHandle> chunks,
                               absl::Span<const ExtentPiece> slot, Bytes size,
                               StreamHandle stream) override;

  absl::StatusOr<StreamHandle> CreateStream() override;
  absl::StatusOr<StreamHandle> AdoptStream(void* stream) override;
  void DestroyStream(StreamHandle stream) override;
  absl::StatusOr<Fence> Record(StreamHandle stream) override;
  absl::StatusOr<bool> IsIdle(StreamHandle stream) override;
  absl::StatusOr<bool> Poll(Fence fence) override;
  absl::Status Wait(Fence fence) override;
  absl::Status StreamWait(StreamHandle stream, Fence fence) override;
  TimeMark MarkTime(StreamHandle stream) override;
  absl::StatusOr<absl::Duration> TimeBetween(const TimeMark& from,
                                             const TimeMark& to) override;

 private:
  using Handles = absl::Span<const ChunkHandle>;
  using Pieces = std::vector<ExtentTable<CudaExtent>::Piece>;

  CudaMapDriver(const CudaApi& api, const CudaDevice& device,
                std::unique_ptr<CudaContext> context, char* begin, Bytes size);

  absl::Status CheckSize(CUmemGenericAllocationHandle memory, Bytes size);

  // CudaChunkTable's Move, for chunks that must fit at `range`.
  absl::StatusOr<CudaChunks> Move(char* range, Handles handles, char* from,
                                  char* to);
  bool HavePassed(absl::Span<const Fence> fences);
  // It may be, or may have been.
  bool IsReadOnly(char* range);
  // Whether the range has these chunks already; if others, they are unmapped.
  bool TakesKept(char* range, Handles handles);
  // Ends a kept mapping, and its range, if that is nobody's. REQUIRES: what may
  // touch it has passed.
  void EndKept(const CudaKeptMapping& mapping);
  // The same once that has passed.
  void EndKeptLater(std::vector<CudaKeptMapping> mappings);
  // Does what EndKeptLater has left to do, as far as it may be; with `wait`,
  // all, once it may.
  void UnmapLeaving(bool wait);
  // Of chunks that belong to the range.
  absl::Status MapChunks(char* range, const CudaChunks& chunks);
  // After a copy into a range has failed.
  void UndoMap(char* range, Handles handles);

  // What a copy out of the range needs, checked.
  absl::StatusOr<Pieces> PiecesFor(char* range, Handles handles,
                                   absl::Span<const ExtentPiece> slot,
                                   Bytes size);
  // The same for a copy in, whose chunks are of no range yet.
  absl::StatusOr<Pieces> PiecesFrom(Handles handles,
                                    absl::Span<const ExtentPiece> slot,
                                    Bytes size);
  // Puts the copies between the range and the pieces into a stream.
  absl::Status Issue(bool out, char* range, const Pieces& pieces,
                     CUstream stream);
  // Issue, and a fence behind it; in host order it waits, and returns the
  // error. `undo` runs once when the copy fails.
  absl::StatusOr<Fence> Copy(bool out, char* range, const Pieces& pieces,
                             StreamHandle stream, std::function<void()> undo);

  const CudaApi& api_;
  const CUmemAccessDesc access_;
  const std::unique_ptr<CudaContext> context_;
  char* const begin_;
  const Bytes size_;
  RangeAllocator ranges_;

  CudaChunkTable chunks_;
  CudaKeptMappings kept_;
  // Held until what was kept at a range that is somebody's is unmapped: its
  // owner may map others there. Before all others.
  absl::Mutex kept_mutex_;
  absl::Mutex leaving_mutex_;  // Taken before those of streams_ and ranges_.
  std::deque<CudaKeptMapping> leaving_ ABSL_GUARDED_BY(leaving_mutex_);
  absl::Mutex read_only_mutex_;
  absl::flat_hash_set<char*> read_only_  // Ranges.
      ABSL_GUARDED_BY(read_only_mutex_);
  ExtentTable<CudaExtent> extents_;
  std::unique_ptr<CudaStreamSet> streams_;
  StreamHandle out_ = StreamHandle::kHostOrder;  // For copies in host order.
  StreamHandle in_ = StreamHandle::kHostOrder;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_MAP_DRIVER_H_
