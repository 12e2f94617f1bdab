#include "daemon/core/extent_space.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace mets::core {

ExtentSpace::ExtentSpace(Bytes size) : size_(size), free_(size) {
  ranges_.emplace(Bytes(), size);
}

std::optional<Bytes> ExtentSpace::TakeWhole(Bytes size) {
  if (size > free_) return std::nullopt;
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    if (it->second >= size) return TakeFrom(it, size).offset;
  }
  return std::nullopt;
}

ExtentSpace::Part ExtentSpace::TakePart(Bytes most) {
  METS_CHECK(!ranges_.empty()) << "taking from a full extent";
  auto it = ranges_.begin();
  return TakeFrom(it, std::min(most, it->second));
}

ExtentSpace::Part ExtentSpace::TakeFrom(std::map<Bytes, Bytes>::iterator range,
                                        Bytes size) {
  const Bytes offset = range->first;
  const Bytes rest = range->second - size;
  ranges_.erase(range);
  if (!rest.is_zero()) ranges_.emplace(offset + size, rest);
  free_ -= size;
  return {offset, size};
}

void ExtentSpace::Give(Bytes offset, Bytes size) {
  free_ += size;
  auto next = ranges_.lower_bound(offset);
  METS_CHECK(next == ranges_.end() || offset + size <= next->first)
      << "bytes given back twice at " << offset;
  if (next != ranges_.end() && next->first == offset + size) {
    size += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    METS_CHECK(before->first + before->second <= offset)
        << "bytes given back twice at " << offset;
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  ranges_.emplace(offset, size);
}

}  // namespace mets::core
