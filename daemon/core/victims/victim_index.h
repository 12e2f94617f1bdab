// VictimIndex: a device's buffers that may leave, in order.
#ifndef METS_DAEMON_CORE_VICTIMS_VICTIM_INDEX_H_
#define METS_DAEMON_CORE_VICTIMS_VICTIM_INDEX_H_

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/sessions/session_table.h"
#include "daemon/core/victims/victim_group.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::core {

// So that choosing victims looks at few buffers, however many there are: each
// session's resident, unpinned buffers stand in groups (size class, clean, next
// use known, held; fixed ones never leave), ordered by the policy's Key, which
// does not change with time. The heads of like groups of all sessions that take
// part stand in one set, ordered by Key as well; the policy's Score, which
// changes with time, compares only the best of these sets (VictimWalk).
//
// A buffer whose last order failed or was skipped rests: it is in no group
// until its skip_until has passed. Buffers that an order names stay where they
// are: their session takes no part meanwhile.
//
// Every change of a buffer is followed by Update, and of a session by
// SetOwner: O(log n) each, a session's as often as it has groups (tens).
//
// Not thread-safe. Borrows the policy, and sessions and buffers until they are
// removed.
class VictimIndex {
 public:
  VictimIndex(const VictimPolicy* policy, double bus_bytes_per_second)
      : policy_(*policy), nanoseconds_per_byte_(1e9 / bus_bytes_per_second) {}
  VictimIndex(VictimIndex&&) = default;

  // Puts the buffer where it belongs now, or nowhere. While frozen, later.
  void Update(const Session& session, Buffer& buffer, absl::Time now);
  // Before the buffer is erased.
  void Remove(const Session& session, Buffer& buffer);
  // Before all buffers of a session are erased; the session is forgotten too.
  void RemoveAll(SessionId session, BufferTable& buffers);
  // What has changed about a session.
  void SetOwner(const VictimOwner& owner);

  // An owner takes no part until the next SetOwner.
  void LeaveOut(VictimOwner& owner) { owner.takes_part = false; }

  // Lets buffers that have rested long enough take part.
  void Wake(absl::Time now);
  // When the next one has.
  absl::Time NextWake() const {
    return resting_.empty() ? absl::InfiniteFuture() : resting_.begin()->until;
  }
  // Between these, nothing moves: Update takes effect at Thaw.
  void Freeze() { frozen_ = true; }
  void Thaw(absl::Time now);

  // --- for VictimWalk ------------------------------------------------------
  // The first head of each set; together in memory, as a walk begins here.
  struct Best {
    VictimHeadsKey key;
    VictimHeadSet* set = nullptr;
    VictimHead head;
  };
  const std::vector<Best>& best() const { return best_; }
  // Forgets heads of sessions that take no part; also while frozen.
  void DropHeads(absl::Span<VictimGroup* const> groups);
  using Groups = std::map<VictimKind, VictimGroup>;
  // Null when the session has none, or takes no part. Of these, a walk may use
  // what their owner offers.
  Groups* GroupsOf(SessionId session);
  // The policy's, scaled by the owner's weight: the heavier, the less it loses.
  double Score(const VictimGroup& group, const VictimEntry& entry,
               absl::Time now) const;
  double Score(const VictimHeadsKey& key, const VictimHead& head,
               absl::Time now) const;

  // OK, or INTERNAL: with a group, sum or head that is not as it should be.
  absl::Status Check() const;
  // The same for one buffer, and one session.
  absl::Status CheckBuffer(const Session& session, const Buffer& buffer) const;
  absl::Status CheckOwner(const VictimOwner& owner) const;

 private:
  struct Member {
    VictimOwner owner;
    Groups groups;
  };
  struct Resting {
    absl::Time until;
    SessionId session;
    BufferId id;
    Buffer* buffer;
    const Session* session_at;
    friend bool operator<(const Resting& a, const Resting& b) {
      return std::tie(a.until, a.session, a.id) <
             std::tie(b.until, b.session, b.id);
    }
  };

  VictimFacts Facts(Bytes size, bool clean, absl::Time last_use,
                    absl::Time next_use) const;
  VictimFacts FactsOf(const Buffer& buffer) const;
  double Weigh(const VictimFacts& facts, int weight, absl::Time now) const;
  VictimKind KindOf(const VictimFacts& facts, bool held) const;
  Member& MemberOf(const Session& session);
  void Take(const Session& session, Buffer& buffer);
  void PlaceHead(VictimGroup& group);
  void DropHead(VictimGroup& group);
  // Where its head stands in its set.
  static VictimHeads::iterator Find(VictimGroup& group);
  VictimHeadsKey WhereHead(const VictimGroup& group, VictimHead* head) const;

  const VictimPolicy& policy_;
  const double nanoseconds_per_byte_;
  absl::node_hash_map<SessionId, Member> members_;
  AllVictimHeads heads_;
  std::vector<Best> best_;  // In no particular order.
  std::set<Resting> resting_;
  bool frozen_ = false;
  std::vector<std::pair<const Session*, Buffer*>> changed_;  // While frozen.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_VICTIM_INDEX_H_
