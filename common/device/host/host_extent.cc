#include "common/device/host/host_extent.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/device/host/populate.h"

namespace mets {
namespace {

constexpr Bytes kPopulateUnit = MiB(2);

}  // namespace

absl::StatusOr<std::unique_ptr<HostExtent>> HostExtent::Register(UniqueFd fd,
                                                                 Bytes size) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) {
    return ErrnoToStatus(errno, "register extent");
  }
  if (info.st_size != size.count() || size <= Bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("register extent: ", info.st_size, " bytes where ",
                     size.count(), " were announced"));
  }
  void* base = mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
  if (base == MAP_FAILED) {
    return ErrnoToStatus(errno,
                         absl::StrCat("map an extent of ", FormatBytes(size)));
  }
  auto extent =
      absl::WrapUnique(new HostExtent(static_cast<char*>(base), size));
  if (madvise(base, size.count(), MADV_DONTFORK) != 0) {
    return ErrnoToStatus(errno, "MADV_DONTFORK");
  }
  return extent;
}

HostExtent::HostExtent(char* base, Bytes size)
    : base_(base),
      size_(size),
      populated_(size.RoundUpTo(kPopulateUnit) / kPopulateUnit) {}

HostExtent::~HostExtent() { munmap(base_, size_.count()); }

absl::Status HostExtent::Populate(Bytes offset, Bytes size) {
  const int64_t end = (offset + size).RoundUpTo(kPopulateUnit) / kPopulateUnit;
  for (int64_t unit = offset / kPopulateUnit; unit < end; ++unit) {
    if (populated_[unit].load(std::memory_order_acquire)) continue;
    const Bytes start = unit * kPopulateUnit;
    const Bytes length = std::min(kPopulateUnit, size_ - start);
    METS_RETURN_IF_ERROR(
        PopulatePageTables(base_ + start.count(), length.count()));
    populated_[unit].store(true, std::memory_order_release);
  }
  return absl::OkStatus();
}

}  // namespace mets
