// ExtentSpace: which bytes of one extent are free.
#ifndef METS_DAEMON_CORE_EXTENT_SPACE_H_
#define METS_DAEMON_CORE_EXTENT_SPACE_H_

#include <map>
#include <optional>

#include "common/base/bytes.h"

namespace mets::core {

// First fit over the free ranges of an extent; neighbours coalesce. Not
// thread-safe.
class ExtentSpace {
 public:
  explicit ExtentSpace(Bytes size);

  Bytes size() const { return size_; }
  Bytes free() const { return free_; }
  bool empty() const { return free_ == size_; }

  // Takes `size` contiguous bytes from the first range that has them; the
  // offset, or nothing.
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
  Part TakeFrom(std::map<Bytes, Bytes>::iterator range, Bytes size);

  const Bytes size_;
  Bytes free_;
  std::map<Bytes, Bytes> ranges_;  // Offset → size; never adjacent.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_EXTENT_SPACE_H_
