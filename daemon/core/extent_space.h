// ExtentSpace: which bytes of one extent are free.
#ifndef METS_DAEMON_CORE_EXTENT_SPACE_H_
#define METS_DAEMON_CORE_EXTENT_SPACE_H_

#include <map>
#include <optional>
#include <set>
#include <utility>

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

  // Takes `size` contiguous bytes; the offset, or nothing when no range has
  // them.
  std::optional<Bytes> TakeWhole(Bytes size);

  struct Part {
    Bytes offset, size;
  };
  // Takes at most `most` contiguous bytes from the first free range.
  // REQUIRES: free() is not zero.
  Part TakePart(Bytes most);

  // REQUIRES: the bytes were taken.
  void Give(Bytes offset, Bytes size);

 private:
  using Ranges = std::map<Bytes, Bytes>;

  void Add(Bytes offset, Bytes size);
  Ranges::iterator Remove(Ranges::iterator range);
  Part TakeFrom(Ranges::iterator range, Bytes size);
  void PutAside();

  const Bytes size_;
  Bytes free_;
  Ranges ranges_;  // Offset → size; never adjacent to each other.
  std::set<std::pair<Bytes, Bytes>> by_size_;  // (Size, offset) of each range.
  Part aside_;                                 // Free, and in no range.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_EXTENT_SPACE_H_
