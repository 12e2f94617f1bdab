#include "client/src/extent_store.h"

#include <utility>

namespace mets::client {

ExtentHandle ExtentStore::Find(uint64_t id) const {
  auto it = extents_.find(id);
  return it == extents_.end() ? ExtentHandle::kNone : it->second;
}

ExtentHandle ExtentStore::Take(uint64_t id) {
  auto it = extents_.find(id);
  if (it == extents_.end()) return ExtentHandle::kNone;
  const ExtentHandle handle = it->second;
  extents_.erase(it);
  return handle;
}

void ExtentStore::BeginEpoch(uint64_t old_epoch, Bytes slot_bytes) {
  Orphans& orphans = orphans_[old_epoch];
  orphans.bytes += slot_bytes;
  for (const auto& [id, handle] : extents_) orphans.extents.push_back(handle);
  extents_.clear();
}

std::vector<ExtentHandle> ExtentStore::DropOrphan(uint64_t epoch, Bytes size) {
  auto it = orphans_.find(epoch);
  if (it == orphans_.end()) return {};
  it->second.bytes -= size;
  if (it->second.bytes > Bytes()) return {};
  std::vector<ExtentHandle> unused = std::move(it->second.extents);
  orphans_.erase(it);
  return unused;
}

Bytes ExtentStore::orphan_bytes() const {
  Bytes total;
  for (const auto& [epoch, orphans] : orphans_) total += orphans.bytes;
  return total;
}

}  // namespace mets::client
