// ExtentStore: swap extents that this process has registered.
#ifndef METS_CLIENT_SRC_EXTENT_STORE_H_
#define METS_CLIENT_SRC_EXTENT_STORE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"

namespace mets::client {

// Extents of the present epoch by identifier. Extents of earlier epochs stay
// registered while buffers have slots in them (orphan slots): those are read
// once, when the buffer comes back, and never reused. Not thread-safe.
class ExtentStore {
 public:
  // kNone when it is not registered.
  ExtentHandle Find(uint64_t id) const;
  void Add(uint64_t id, ExtentHandle handle) { extents_[id] = handle; }
  // Removes it; kNone when there is none. The caller tells the driver.
  ExtentHandle Take(uint64_t id);

  // All extents belong to an earlier epoch now; `slot_bytes` of live buffers
  // lie in them.
  void BeginEpoch(uint64_t old_epoch, Bytes slot_bytes);
  // A slot of an earlier epoch is gone. Returns the extents that nobody needs
  // any more.
  std::vector<ExtentHandle> DropOrphan(uint64_t epoch, Bytes size);
  Bytes orphan_bytes() const;

 private:
  struct Orphans {
    Bytes bytes;
    std::vector<ExtentHandle> extents;
  };
  absl::flat_hash_map<uint64_t, ExtentHandle> extents_;
  std::map<uint64_t, Orphans> orphans_;  // By epoch.
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_EXTENT_STORE_H_
