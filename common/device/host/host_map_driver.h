// HostMapDriver: MapDriver of a host device.
#ifndef METS_COMMON_DEVICE_HOST_HOST_MAP_DRIVER_H_
#define METS_COMMON_DEVICE_HOST_HOST_MAP_DRIVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/device/extent_table.h"
#include "common/device/host/address_region.h"
#include "common/device/host/host_chunk.h"
#include "common/device/host/host_extent.h"
#include "common/device/host/stream_set.h"
#include "common/device/map_driver.h"

namespace mets {

struct HostMapOptions {
  // Addresses for ranges, and as many again for the driver's own mappings.
  // Only addresses: no memory is used for them.
  Bytes region_size = GiB(1024);
  // Moves page tables where the kernel can; false: as on an older kernel.
  bool move_page_tables = true;
};

// Chunks are memfds, mapped where a GPU's buffer would have its addresses.
// Each chunk also has an alias, a mapping that only the driver knows: CopyIn
// fills it there and then moves its page tables to the range, so that a reader
// finds either no memory or complete memory, and nobody takes page faults for
// pages that this process has mapped before. An access to what is not mapped,
// or is blocked, raises SIGSEGV, reads as well as writes.
//
// CopyOut reads through the alias: it is fast when the range is blocked (its
// page tables are at the alias then), and safe, but slower, when not. Access
// may be blocked and allowed while a CopyOut is under way.
//
// Copies of one fence's work report their errors at that fence; the fence of
// Record reports the first error since the stream's last Record. Work in host
// order is done when the call returns, and StreamWait on host order waits.
//
// Descriptors are closed as soon as they are mapped. Forked children have no
// mapping of any chunk or extent there; they must not use or destroy the
// driver. Thread-safe as MapDriver says. REQUIRES at destruction: nothing uses
// a range any more.
class HostMapDriver : public MapDriver {
 public:
  // RESOURCE_EXHAUSTED when the process may not reserve enough addresses (a
  // region of at least 8 GiB is tried, by halves).
  static absl::StatusOr<std::unique_ptr<HostMapDriver>> Create(
      HostMapOptions options);

  MapDriverInfo info() const override;
  char* region_begin() const override { return ranges_->begin(); }
  char* region_end() const override { return ranges_->end(); }

  absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) override;
  void ForgetChunk(ChunkHandle chunk) override;
  absl::StatusOr<ExtentHandle> RegisterExtent(UniqueFd fd, Bytes size) override;
  void ForgetExtent(ExtentHandle extent) override;

  absl::StatusOr<char*> ReserveRange(Bytes size) override;
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

 private:
  using Chunks = std::vector<HostChunk*>;
  using Piece = ExtentTable<HostExtent>::Piece;

  HostMapDriver(std::unique_ptr<AddressRegion> ranges,
                std::unique_ptr<AddressRegion> aliases,
                HostChunk::Method method);

  // The chunks' objects; INVALID_ARGUMENT when a handle is unknown, when they
  // do not fit at `range`, or when one belongs to another range than `owner`.
  absl::StatusOr<Chunks> Resolve(char* range,
                                 absl::Span<const ChunkHandle> chunks,
                                 char* owner);
  absl::Status MakeAccessible(char* range, const Chunks& chunks);
  absl::Status Protect(char* range, const Chunks& chunks, bool read_only);
  absl::Status MakeInaccessible(char* range, const Chunks& chunks);
  absl::Status FillAndMap(char* range, const Chunks& chunks,
                          const std::vector<Piece>& slot);

  const std::unique_ptr<AddressRegion> ranges_;
  const std::unique_ptr<AddressRegion> aliases_;
  const HostChunk::Method method_;

  absl::Mutex mutex_;  // Guards the table; what it points to has rules above.
  uint32_t next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<ChunkHandle, std::unique_ptr<HostChunk>> chunks_
      ABSL_GUARDED_BY(mutex_);
  ExtentTable<HostExtent> extents_;
  StreamSet streams_;  // Last: its work ends before the rest goes.
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_MAP_DRIVER_H_
