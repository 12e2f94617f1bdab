#include "daemon/core/swap/extent_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace mets::core {
namespace {

// How much is set aside, where there is so much in one range.
constexpr Bytes kAside = MiB(256);

}  // namespace

ExtentSpace::ExtentSpace(Bytes size) : size_(size), free_(size) {
  Add(Bytes(), size);
}

std::optional<Bytes> ExtentSpace::TakeWhole(Bytes size) {
  if (free_ < size) return std::nullopt;
  if (aside_.size < size) {
    const auto large = by_size_.lower_bound({std::max(size, kAside), Bytes()});
    if (large == by_size_.end()) return TakeFit(size);
    const auto range = ranges_.find(large->second);
    const Part part{range->first, range->second};
    Remove(range);
    PutAside();
    aside_ = part;
  }
  const Bytes offset = aside_.offset;
  aside_.offset += size;
  aside_.size -= size;
  free_ -= size;
  ++takes_;
  return offset;
}

std::optional<Bytes> ExtentSpace::TakeFit(Bytes size) {
  auto fit = by_size_.lower_bound({size, Bytes()});
  if (fit == by_size_.end()) {
    // Together with its neighbours, what is set aside may do.
    PutAside();
    fit = by_size_.lower_bound({size, Bytes()});
    if (fit == by_size_.end()) return std::nullopt;
  }
  return TakeFrom(ranges_.find(fit->second), size).offset;
}

void ExtentSpace::PutAside() {
  const Part part = std::exchange(aside_, {});
  if (part.size.is_zero()) return;
  free_ -= part.size;
  Give(part.offset, part.size);
}

void ExtentSpace::Add(Bytes offset, Bytes size) {
  ranges_.emplace(offset, size);
  by_size_.emplace(size, offset);
}

ExtentSpace::Ranges::iterator ExtentSpace::Remove(Ranges::iterator range) {
  by_size_.erase({range->second, range->first});
  return ranges_.erase(range);
}

ExtentSpace::Part ExtentSpace::TakePart(Bytes most) {
  PutAside();
  METS_CHECK(!ranges_.empty()) << "taking from a full extent";
  auto it = ranges_.begin();
  return TakeFrom(it, std::min(most, it->second));
}

ExtentSpace::Part ExtentSpace::TakeFrom(Ranges::iterator range, Bytes size) {
  const Bytes offset = range->first;
  const Bytes rest = range->second - size;
  Remove(range);
  if (!rest.is_zero()) Add(offset + size, rest);
  free_ -= size;
  ++takes_;
  return {offset, size};
}

bool ExtentSpace::TakeAt(Bytes offset, Bytes size) {
  PutAside();
  auto range = ranges_.upper_bound(offset);
  if (size <= Bytes() || range == ranges_.begin()) return false;
  --range;
  const Bytes begin = range->first;
  const Bytes end = begin + range->second;
  if (offset < begin || size > end - offset) return false;
  Remove(range);
  if (begin < offset) Add(begin, offset - begin);
  if (offset + size < end) Add(offset + size, end - (offset + size));
  free_ -= size;
  ++takes_;
  return true;
}

void ExtentSpace::Give(Bytes offset, Bytes size) {
  METS_CHECK(offset + size <= aside_.offset ||
             aside_.offset + aside_.size <= offset || aside_.size.is_zero())
      << "bytes given back twice at " << offset;
  free_ += size;
  auto next = ranges_.lower_bound(offset);
  METS_CHECK(next == ranges_.end() || offset + size <= next->first)
      << "bytes given back twice at " << offset;
  if (next != ranges_.end() && next->first == offset + size) {
    size += next->second;
    next = Remove(next);
  }
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    METS_CHECK(before->first + before->second <= offset)
        << "bytes given back twice at " << offset;
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      Remove(before);
    }
  }
  Add(offset, size);
}

}  // namespace mets::core
