#include "common/device/host/address_region.h"

#include <errno.h>
#include <sys/mman.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"

namespace mets {
namespace {

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

uint64_t AlignUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AddressRegion>> AddressRegion::Reserve(
    Bytes size) {
  const Bytes mapping_size = size + kLargeAlignment;
  void* mapping =
      mmap(nullptr, mapping_size.count(), PROT_NONE, kReserveFlags, -1, 0);
  if (mapping == MAP_FAILED) {
    return ErrnoToStatus(
        errno, absl::StrCat("reserve ", FormatBytes(size),
                            " of addresses (is there an `ulimit -v`?)"));
  }
  char* base = static_cast<char*>(mapping);
  const uint64_t address = reinterpret_cast<uint64_t>(base);
  char* begin = base + (AlignUp(address, kLargeAlignment.count()) - address);
  return absl::WrapUnique(new AddressRegion(base, mapping_size, begin, size));
}

AddressRegion::AddressRegion(char* mapping, Bytes mapping_size, char* begin,
                             Bytes size)
    : mapping_(mapping),
      mapping_size_(mapping_size),
      begin_(begin),
      size_(size) {
  absl::MutexLock lock(&mutex_);
  AddHole(0, size.count());
}

AddressRegion::~AddressRegion() { munmap(mapping_, mapping_size_.count()); }

bool AddressRegion::Contains(const char* address, Bytes size) const {
  return address >= begin() && address <= end() && size >= Bytes() &&
         size.count() <= end() - address;
}

absl::StatusOr<char*> AddressRegion::Allocate(Bytes size) {
  if (size <= Bytes() || size != size.RoundUpTo(kGranularity)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a range of ", size.count(), " bytes: sizes are multiples",
                     " of ", FormatBytes(kGranularity)));
  }
  const uint64_t want = size.count();
  const uint64_t alignment =
      (size >= kLargeAlignment ? kLargeAlignment : kGranularity).count();
  absl::MutexLock lock(&mutex_);
  for (auto it = by_size_.lower_bound({want, 0}); it != by_size_.end(); ++it) {
    const auto [hole_size, hole] = *it;
    const uint64_t start = AlignUp(hole, alignment);
    if (start + want > hole + hole_size) continue;
    RemoveHole(hole, hole_size);
    if (start > hole) AddHole(hole, start - hole);
    const uint64_t rest = hole + hole_size - (start + want);
    if (rest > 0) AddHole(start + want, rest);
    return begin_ + start;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", FormatBytes(size), " of addresses left in a region",
                   " of ", FormatBytes(size_)));
}

void AddressRegion::Free(char* range, Bytes size) {
  METS_CHECK(Contains(range, size)) << static_cast<void*>(range);
  uint64_t offset = range - begin_;
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

absl::Status AddressRegion::Clear(char* address, Bytes size) {
  if (mmap(address, size.count(), PROT_NONE, kReserveFlags | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    return ErrnoToStatus(errno, absl::StrCat("unmap ", FormatBytes(size)));
  }
  return absl::OkStatus();
}

void AddressRegion::AddHole(uint64_t offset, uint64_t size) {
  holes_.emplace(offset, size);
  by_size_.emplace(size, offset);
}

void AddressRegion::RemoveHole(uint64_t offset, uint64_t size) {
  holes_.erase(offset);
  by_size_.erase({size, offset});
}

}  // namespace mets
