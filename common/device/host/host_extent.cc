#include "common/device/host/host_extent.h"

#include <sys/mman.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/device/host/host_memory.h"
#include "common/device/host/populate.h"

namespace mets {
namespace {

constexpr Bytes kPopulateUnit = MiB(2);

}  // namespace

absl::StatusOr<std::unique_ptr<HostExtent>> HostExtent::Register(UniqueFd fd,
                                                                 Bytes size) {
  METS_ASSIGN_OR_RETURN(char* base, MapHostExtent(fd, size));
  return absl::WrapUnique(new HostExtent(base, size));
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
