// HostExtent: one swap extent in a client process.
#ifndef METS_COMMON_DEVICE_HOST_HOST_EXTENT_H_
#define METS_COMMON_DEVICE_HOST_HOST_EXTENT_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/unique_fd.h"

namespace mets {

// A memfd that is mapped whole; its page tables are filled piece by piece as
// slots are used. Needs no descriptor after Register. Forked children do not
// have the mapping. Thread-safe.
class HostExtent {
 public:
  // INVALID_ARGUMENT when `fd` does not have exactly `size` bytes.
  static absl::StatusOr<std::unique_ptr<HostExtent>> Register(UniqueFd fd,
                                                              Bytes size);
  HostExtent(const HostExtent&) = delete;
  HostExtent& operator=(const HostExtent&) = delete;
  ~HostExtent();

  Bytes size() const { return size_; }
  char* base() const { return base_; }

  // Makes [offset, offset + size) usable without page faults.
  // REQUIRES: it lies within the extent.
  absl::Status Populate(Bytes offset, Bytes size);

 private:
  HostExtent(char* base, Bytes size);

  char* const base_;
  const Bytes size_;
  std::vector<std::atomic<bool>> populated_;  // One for each kPopulateUnit.
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_EXTENT_H_
