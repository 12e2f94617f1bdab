#include "common/device/range_allocator.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets {
namespace {

uint64_t AlignUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

RangeAllocator::RangeAllocator(Bytes size, Rules rules)
    : size_(size), rules_(rules) {
  absl::MutexLock lock(&mutex_);
  AddHole(0, size.count());
}

absl::StatusOr<uint64_t> RangeAllocator::Allocate(Bytes size) {
  if (size <= Bytes() || size != size.RoundUpTo(rules_.granularity)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a range of ", size.count(), " bytes: sizes are multiples",
                     " of ", FormatBytes(rules_.granularity)));
  }
  const uint64_t want = size.count();
  const uint64_t alignment =
      (size >= rules_.large_alignment ? rules_.large_alignment
                                      : rules_.granularity)
          .count();
  absl::MutexLock lock(&mutex_);
  for (auto it = by_size_.lower_bound({want, 0}); it != by_size_.end(); ++it) {
    const auto [hole_size, hole] = *it;
    const uint64_t start = AlignUp(hole, alignment);
    if (start + want > hole + hole_size) continue;
    RemoveHole(hole, hole_size);
    if (start > hole) AddHole(hole, start - hole);
    const uint64_t rest = hole + hole_size - (start + want);
    if (rest > 0) AddHole(start + want, rest);
    return start;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", FormatBytes(size), " of addresses left in a region",
                   " of ", FormatBytes(size_)));
}

void RangeAllocator::Free(uint64_t offset, Bytes size) {
  METS_CHECK(offset + size.count() <= static_cast<uint64_t>(size_.count()))
      << size << " at offset " << offset;
  uint64_t length = size.count();
  absl::MutexLock lock(&mutex_);
  auto next = holes_.lower_bound(offset);
  METS_CHECK(next == holes_.end() || next->first >= offset + length)
      << "freed twice: " << size << " at offset " << offset;
  if (next != holes_.begin()) {
    auto before = std::prev(next);
    METS_CHECK(before->first + before->second <= offset)
        << "freed twice: " << size << " at offset " << offset;
    if (before->first + before->second == offset) {
      const auto [hole, hole_size] = *before;
      RemoveHole(hole, hole_size);
      offset = hole;
      length += hole_size;
    }
  }
  if (next != holes_.end() && next->first == offset + length) {
    const auto [hole, hole_size] = *next;
    RemoveHole(hole, hole_size);
    length += hole_size;
  }
  AddHole(offset, length);
}

void RangeAllocator::AddHole(uint64_t offset, uint64_t size) {
  holes_.emplace(offset, size);
  by_size_.emplace(size, offset);
}

void RangeAllocator::RemoveHole(uint64_t offset, uint64_t size) {
  holes_.erase(offset);
  by_size_.erase({size, offset});
}

}  // namespace mets
