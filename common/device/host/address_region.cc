#include "common/device/host/address_region.h"

#include <errno.h>
#include <sys/mman.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

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
      size_(size),
      ranges_(size, {kGranularity, kLargeAlignment}) {}

AddressRegion::~AddressRegion() { munmap(mapping_, mapping_size_.count()); }

bool AddressRegion::Contains(const char* address, Bytes size) const {
  return address >= begin() && address <= end() && size >= Bytes() &&
         size.count() <= end() - address;
}

absl::StatusOr<char*> AddressRegion::Allocate(Bytes size) {
  METS_ASSIGN_OR_RETURN(const uint64_t offset, ranges_.Allocate(size));
  return begin_ + offset;
}

void AddressRegion::Free(char* range, Bytes size) {
  METS_CHECK(Contains(range, size)) << static_cast<void*>(range);
  ranges_.Free(range - begin_, size);
}

absl::Status AddressRegion::Clear(char* address, Bytes size) {
  if (mmap(address, size.count(), PROT_NONE, kReserveFlags | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    return ErrnoToStatus(errno, absl::StrCat("unmap ", FormatBytes(size)));
  }
  return absl::OkStatus();
}

}  // namespace mets
