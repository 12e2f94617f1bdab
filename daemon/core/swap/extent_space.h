// ExtentSpace: which bytes of one extent are free.
#ifndef METS_DAEMON_CORE_SWAP_EXTENT_SPACE_H_
#define METS_DAEMON_CORE_SWAP_EXTENT_SPACE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "common/base/bytes.h"

namespace mets::core {

// Best fit over the free ranges of an extent; neighbours coalesce. O(log n) in
// the number of ranges; what is taken in a row mostly comes from one range that
// is set aside, in O(1). Not thread-safe.
class ExtentSpace {
 public:
  explicit ExtentSpace(Bytes size);

  Bytes size() const { return size_; }
  Bytes free() const { return free_; }
  bool empty() const { return free_ == size_; }
  // How often bytes of it have been taken.
  uint64_t takes() const { return takes_; }

  // Takes `size` contiguous bytes; the offset, or nothing when no range has
  // them.
  std::optional<Bytes> TakeWhole(Bytes size);

  struct Part {
    Bytes offset, size;
  };
  // Takes at most `most` contiguous bytes from the first free range.
  // REQUIRES: free() is not zero.
  Part TakePart(Bytes most);

  // Takes exactly these bytes; false, and nothing changes, unless all are free.
  bool TakeAt(Bytes offset, Bytes size);

  // REQUIRES: the bytes were taken.
  void Give(Bytes offset, Bytes size);

 private:
  using Ranges = absl::btree_map<Bytes, Bytes>;

  void Add(Bytes offset, Bytes size);
  Ranges::iterator Remove(Ranges::iterator range);
  // Best fit, where no range is large enough to be set aside.
  std::optional<Bytes> TakeFit(Bytes size);
  Part TakeFrom(Ranges::iterator range, Bytes size);
  void PutAside();

  const Bytes size_;
  Bytes free_;
  uint64_t takes_ = 0;
  Ranges ranges_;  // Offset → size; never adjacent to each other.
  // (Size, offset) of each range.
  absl::btree_set<std::pair<Bytes, Bytes>> by_size_;
  Part aside_;  // Free, and in no range.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SWAP_EXTENT_SPACE_H_
