// HostChunk: one chunk of a host device in a client process.
#ifndef METS_COMMON_DEVICE_HOST_HOST_CHUNK_H_
#define METS_COMMON_DEVICE_HOST_HOST_CHUNK_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"
#include "common/device/host/address_region.h"

namespace mets {

// A memfd that is always mapped at its alias, an address that only the driver
// knows, and that can be mapped at one more address, in a range. Its page
// tables are filled once and then travel between the two places (mremap), so
// that neither copies nor the program take page faults again.
//
// Needs no descriptor after Import. Forked children do not have its mappings.
//
// Calls must not overlap in time, except that the alias may be read and
// written at any time. Owned by the driver; the alias region must outlive it.
class HostChunk {
 public:
  // How the two mappings come about.
  enum class Method {
    // mremap(MREMAP_DONTUNMAP) moves the page tables (kernel >= 5.13).
    kMove,
    // A second, unfilled mapping (older kernels): slower, otherwise equal.
    kDuplicate,
  };

  // kMove where this kernel can.
  static Method BestMethod();

  // INVALID_ARGUMENT when `fd` does not have exactly `size` bytes.
  static absl::StatusOr<std::unique_ptr<HostChunk>> Import(
      AddressRegion& aliases, UniqueFd fd, Bytes size, Method method);
  HostChunk(const HostChunk&) = delete;
  HostChunk& operator=(const HostChunk&) = delete;
  ~HostChunk();

  Bytes size() const { return size_; }
  char* alias() const { return alias_; }

  // The range it belongs to, nullptr when none; whether it is mapped there.
  char* range() const { return range_.load(std::memory_order_acquire); }
  bool accessible() const {
    return accessible_.load(std::memory_order_acquire);
  }
  // There, the program may only read.
  bool read_only() const { return read_only_.load(std::memory_order_acquire); }
  void set_read_only(bool value) {
    read_only_.store(value, std::memory_order_release);
  }
  void set_place(char* range, bool accessible) {
    range_.store(range, std::memory_order_release);
    accessible_.store(accessible, std::memory_order_release);
  }

  // Fills the page tables (at the first call, while mapped nowhere).
  absl::Status Populate();

  // Maps the chunk at `address`, over whatever is there.
  absl::Status MoveTo(char* address);
  // Takes the page tables back from `address`, where the chunk stays mapped
  // until the caller clears that place.
  absl::Status MoveBack(char* address);

 private:
  HostChunk(AddressRegion& aliases, Bytes size, char* alias, Method method)
      : aliases_(aliases), size_(size), alias_(alias), method_(method) {}

  AddressRegion& aliases_;
  const Bytes size_;
  char* const alias_;
  const Method method_;
  std::atomic<bool> populated_ = false;
  std::atomic<char*> range_ = nullptr;
  std::atomic<bool> accessible_ = false;
  std::atomic<bool> read_only_ = false;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_CHUNK_H_
