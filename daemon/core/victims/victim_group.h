// VictimGroup: buffers of one session that are alike, best victim first.
#ifndef METS_DAEMON_CORE_VICTIMS_VICTIM_GROUP_H_
#define METS_DAEMON_CORE_VICTIMS_VICTIM_GROUP_H_

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace mets::core {

struct Buffer;
struct Session;
struct VictimGroup;
struct VictimOwner;

// What buffers of a group have in common.
struct VictimKind {
  int size_class = 0;  // Sizes of [2^size_class, 2^(size_class + 1)) bytes.
  bool clean = false;  // They leave without a copy.
  bool known = false;  // Something says when they are used again.
  bool held = false;   // They leave only while their session waits at its gate.

  Bytes smallest() const { return Bytes(int64_t{1} << size_class); }
  friend bool operator<(const VictimKind& a, const VictimKind& b) {
    return std::tie(a.size_class, a.clean, a.known, a.held) <
           std::tie(b.size_class, b.clean, b.known, b.held);
  }
  friend bool operator==(const VictimKind& a, const VictimKind& b) {
    return !(a < b) && !(b < a);
  }
};

// A buffer in its group. The largest key stands first, then the larger buffer.
struct VictimEntry {
  double key = 0;
  Bytes size;
  BufferId id;
  Buffer* buffer = nullptr;
  // As of the buffer: whoever compares scores need not look at it.
  mutable absl::Time last_use, next_use;

  friend bool operator<(const VictimEntry& a, const VictimEntry& b) {
    return std::tie(b.key, b.size, a.id) < std::tie(a.key, a.size, b.id);
  }
};

// The first of a group, among the first of other sessions' like groups.
struct VictimHead {
  double key = 0;
  Bytes size;
  SessionId session;
  BufferId buffer;
  Buffer* at = nullptr;  // The buffer.
  VictimGroup* group = nullptr;
  const VictimOwner* owner = nullptr;
  absl::Time last_use, next_use;

  // Whether `b` is the better one.
  friend bool operator<(const VictimHead& a, const VictimHead& b) {
    return std::tie(a.key, a.size, b.session, b.buffer) <
           std::tie(b.key, b.size, a.session, a.buffer);
  }
};
// The best last. Sessions are few, and a walk reads one after the other.
using VictimHeads = std::vector<VictimHead>;

// Which heads are compared with each other by Key.
struct VictimHeadsKey {
  VictimKind kind;
  int priority = 0;
  int weight = 1;
  bool waits = false;  // As VictimOwner::waits.
  friend bool operator<(const VictimHeadsKey& a, const VictimHeadsKey& b) {
    return std::tie(a.priority, a.weight, a.waits, a.kind) <
           std::tie(b.priority, b.weight, b.waits, b.kind);
  }
};
// The heads of like groups, and which of the best ones is theirs.
struct VictimHeadSet {
  VictimHeads heads;  // Not empty.
  size_t best = 0;
};
using AllVictimHeads = std::map<VictimHeadsKey, VictimHeadSet>;

// A session's part of a VictimIndex.
struct VictimOwner {
  const Session* session = nullptr;
  // It can follow an order to evict now. Then the groups that it offers have
  // heads; others may have them too, until a walk meets them.
  bool takes_part = false;
  int priority = 0;
  int weight = 1;
  // Its buffers are not used before.
  absl::Time not_before = absl::InfinitePast();
  bool held_may_leave = false;

  bool offers(const VictimKind& kind) const {
    return takes_part && (held_may_leave || !kind.held);
  }
  // Others have their turn.
  bool waits() const { return not_before != absl::InfinitePast(); }

  friend bool operator==(const VictimOwner& a, const VictimOwner& b) {
    return a.session == b.session && a.takes_part == b.takes_part &&
           a.priority == b.priority && a.weight == b.weight &&
           a.not_before == b.not_before && a.held_may_leave == b.held_may_leave;
  }
};

struct VictimGroup {
  VictimOwner* owner = nullptr;
  VictimKind kind;
  std::set<VictimEntry> entries;
  // Where its head stands, if it has one.
  bool has_head = false;
  AllVictimHeads::iterator heads;
  VictimHead head;
};

// Where a buffer stands in the index; only VictimIndex changes it.
struct VictimPlace {
  VictimGroup* group = nullptr;
  std::set<VictimEntry>::iterator entry;
  absl::Time rests_until = absl::InfinitePast();  // Among those that rest.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_VICTIM_GROUP_H_
