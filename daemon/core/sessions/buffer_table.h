// BufferTable: the buffers of one session on one device, as reported.
#ifndef METS_DAEMON_CORE_SESSIONS_BUFFER_TABLE_H_
#define METS_DAEMON_CORE_SESSIONS_BUFFER_TABLE_H_

#include <unordered_map>

#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/types.h"
#include "daemon/core/victims/victim_group.h"

namespace mets::core {

struct Buffer {
  BufferId id;
  Bytes size;
  BufferState state = BufferState::kResident;
  Mobility mobility = Mobility::kMovable;
  bool pinned = false;
  absl::Time last_use;
  uint32_t logical = 0;  // As reported.
  // InfiniteFuture: nothing says so.
  absl::Time next_use = absl::InfiniteFuture();
  SlotId slot;  // Its slot of this epoch, or none.
  // The slot of its session's plan that holds its bytes, or none.
  SlotId planned;
  // The order that names it as a candidate; it owns the slot meanwhile.
  OrderId order;
  // During the order: reported as swapped by it, so that a later report as
  // resident means that it came back.
  bool left = false;
  // During the order: the slot still held its bytes at the last report.
  bool clean = false;
  // Its last order failed or was skipped: not to be named again before.
  absl::Time skip_until = absl::InfinitePast();
  VictimPlace place;  // The VictimIndex's.

  // May be named in an order: as far as is known, when its session has none
  // yet and skip_until has passed.
  bool CanLeave() const {
    return CanLeaveAtGate() && mobility == Mobility::kMovable;
  }
  // The same while its session waits at its gate (Holding::waits_at_gate).
  bool CanLeaveAtGate() const {
    return state == BufferState::kResident && !pinned &&
           mobility != Mobility::kFixed;
  }
};

// Whoever changes or erases a buffer tells the device's VictimIndex.
//
// Not thread-safe. Buffers stay at their address until they are erased.
class BufferTable {
 public:
  using Map = std::unordered_map<BufferId, Buffer, absl::Hash<BufferId>>;

  // Null when there is no such buffer.
  Buffer* Find(BufferId id);
  const Buffer* Find(BufferId id) const;
  Buffer& FindOrAdd(BufferId id, Bytes size);
  void Erase(BufferId id);
  void Clear();
  // Changes state and mobility, on which the sums depend.
  void Set(Buffer& buffer, BufferState state, Mobility mobility);

  // In no particular order.
  Map& all() { return buffers_; }
  const Map& all() const { return buffers_; }
  size_t size() const { return buffers_.size(); }

  // Sums of sizes: buffers whose data is in swap space; resident buffers; those
  // of them that are held or fixed.
  Bytes swapped() const { return swapped_; }
  Bytes resident() const { return resident_; }
  Bytes held() const { return held_; }

 private:
  void Count(const Buffer& buffer, int64_t sign);

  Map buffers_;
  Bytes swapped_, resident_, held_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_BUFFER_TABLE_H_
