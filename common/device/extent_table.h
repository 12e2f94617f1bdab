// ExtentTable: the swap extents that a MapDriver has registered.
#ifndef METS_COMMON_DEVICE_EXTENT_TABLE_H_
#define METS_COMMON_DEVICE_EXTENT_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"

namespace mets {

// Owns extents, by handle; `Extent` has a size(). Thread-safe.
template <typename Extent>
class ExtentTable {
 public:
  // A part of a slot.
  struct Piece {
    Extent* extent;
    Bytes offset;
    Bytes size;
  };

  ExtentHandle Add(std::unique_ptr<Extent> extent) {
    absl::MutexLock lock(&mutex_);
    const ExtentHandle handle{next_handle_++};
    extents_.emplace(handle, std::move(extent));
    return handle;
  }

  // Takes the extent out; null when there is none.
  std::unique_ptr<Extent> Take(ExtentHandle handle) {
    absl::MutexLock lock(&mutex_);
    const auto it = extents_.find(handle);
    if (it == extents_.end()) return nullptr;
    std::unique_ptr<Extent> extent = std::move(it->second);
    extents_.erase(it);
    return extent;
  }

  void Clear() {
    absl::MutexLock lock(&mutex_);
    extents_.clear();
  }

  // The first `size` bytes of `slot`. INVALID_ARGUMENT when it is too small or
  // reaches beyond an extent.
  absl::StatusOr<std::vector<Piece>> Resolve(absl::Span<const ExtentPiece> slot,
                                             Bytes size) {
    std::vector<Piece> pieces;
    pieces.reserve(slot.size());
    absl::MutexLock lock(&mutex_);
    for (const ExtentPiece& piece : slot) {
      if (size <= Bytes()) break;
      const auto it = extents_.find(piece.extent);
      if (it == extents_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("no extent ", static_cast<uint32_t>(piece.extent)));
      }
      const Bytes room = it->second->size();
      if (piece.offset < Bytes() || piece.size <= Bytes() ||
          piece.offset > room || piece.size > room - piece.offset) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a slot's piece of ", piece.size.count(), " bytes at ",
            piece.offset.count(), " in an extent of ", FormatBytes(room)));
      }
      const Bytes used = std::min(size, piece.size);
      pieces.push_back({it->second.get(), piece.offset, used});
      size -= used;
    }
    if (size > Bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slot that is ", FormatBytes(size), " too small"));
    }
    return pieces;
  }

 private:
  absl::Mutex mutex_;
  uint32_t next_handle_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<ExtentHandle, std::unique_ptr<Extent>> extents_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_EXTENT_TABLE_H_
