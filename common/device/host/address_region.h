// AddressRegion: reserved addresses of this process, given out in ranges.
#ifndef METS_COMMON_DEVICE_HOST_ADDRESS_REGION_H_
#define METS_COMMON_DEVICE_HOST_ADDRESS_REGION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/device/range_allocator.h"

namespace mets {

// Addresses without memory (PROT_NONE), of which ranges are allocated, best
// fit. No part of it is ever unmapped while the object lives, so that nothing
// else of the process can come to lie in it.
//
// Thread-safe. Unmaps everything when it goes: nothing may use it any more.
class AddressRegion {
 public:
  // Ranges start at, and are multiples of, this.
  static constexpr Bytes kGranularity = KiB(64);
  // Ranges of at least this size start at a multiple of it: the kernel then
  // moves whole page-table pages instead of single entries.
  static constexpr Bytes kLargeAlignment = MiB(2);

  // RESOURCE_EXHAUSTED when the process has no `size` bytes of addresses
  // (e.g. `ulimit -v`).
  static absl::StatusOr<std::unique_ptr<AddressRegion>> Reserve(Bytes size);
  AddressRegion(const AddressRegion&) = delete;
  AddressRegion& operator=(const AddressRegion&) = delete;
  ~AddressRegion();

  char* begin() const { return begin_; }
  char* end() const { return begin_ + size_.count(); }
  bool Contains(const char* address, Bytes size) const;

  // INVALID_ARGUMENT when `size` is no positive multiple of kGranularity,
  // RESOURCE_EXHAUSTED when no hole is large enough.
  absl::StatusOr<char*> Allocate(Bytes size);
  // REQUIRES: a range that Allocate returned, with nothing mapped in it.
  void Free(char* range, Bytes size);

  // Replaces whatever is mapped at [address, address + size) by nothing.
  // A failed call changes nothing.
  absl::Status Clear(char* address, Bytes size);

 private:
  AddressRegion(char* mapping, Bytes mapping_size, char* begin, Bytes size);

  char* const mapping_;  // With the slack that aligns begin_.
  const Bytes mapping_size_;
  char* const begin_;
  const Bytes size_;
  RangeAllocator ranges_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_ADDRESS_REGION_H_
