// PoolDriver: the daemon's view of one device's physical memory.
#ifndef METS_COMMON_DEVICE_POOL_DRIVER_H_
#define METS_COMMON_DEVICE_POOL_DRIVER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"

namespace mets {

// What a PoolDriver is and can do.
struct PoolDriverInfo {
  // "host" or "cuda"; the part of the device identifier before its number.
  std::string kind;
  // Bytes of the device that exist physically.
  Bytes total;
  // Sizes in which chunks are made, ascending; each divides the next one.
  std::vector<Bytes> chunk_classes;
  // To or from the host, one way; 0: not known.
  double bus_bytes_per_second = 0;
  // As of MapDriverInfo.
  int moves = 1;
};

// Makes and destroys the physical memory of one device. It needs no context
// on the device and keeps nothing mapped.
//
// A chunk is represented by its descriptor: whoever holds a descriptor or a
// mapping of it keeps its memory alive. Releasing a chunk closes the daemon's
// descriptor; the memory is free once the last holder has done so as well.
//
// Thread-safe. Calls may take milliseconds and never block on other
// processes. A failed call changes nothing.
class PoolDriver {
 public:
  virtual ~PoolDriver() = default;

  virtual PoolDriverInfo info() const = 0;

  // Creates zeroed memory of exactly `size` bytes, all of it allocated now (so
  // that it is charged to the calling process), and returns its descriptor.
  // REQUIRES: `size` is one of the chunk classes.
  // RESOURCE_EXHAUSTED when the device or the machine has no such memory.
  virtual absl::StatusOr<UniqueFd> CreateChunk(Bytes size) = 0;

  // Takes over a chunk that an earlier daemon created (from a descriptor
  // store). INVALID_ARGUMENT when `fd` is no chunk of this driver or has
  // another size; `fd` is closed then.
  virtual absl::StatusOr<UniqueFd> AdoptChunk(UniqueFd fd, Bytes size) = 0;

  // Releases the daemon's hold on a chunk.
  virtual absl::Status ReleaseChunk(UniqueFd fd) = 0;

  // Creates host memory for swap extents: `size` bytes, populated by the
  // daemon. RESOURCE_EXHAUSTED when the machine has no such memory.
  virtual absl::StatusOr<UniqueFd> CreateExtent(Bytes size) = 0;

  // Takes over an extent that an earlier daemon created. Errors as AdoptChunk.
  virtual absl::StatusOr<UniqueFd> AdoptExtent(UniqueFd fd, Bytes size) = 0;

  // Bytes of the device that nobody uses now, METS included.
  virtual absl::StatusOr<Bytes> FreeBytes() const = 0;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_POOL_DRIVER_H_
