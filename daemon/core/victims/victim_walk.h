// VictimWalk: goes through a device's possible victims, the best first.
#ifndef METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_
#define METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_

#include <set>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/victims/victim_index.h"

namespace mets::core {

// A merge of the index's groups by score: it looks at the heads, and opens a
// group only when its first buffer is the best of all. Whatever the policy
// says, buffers of sessions that wait for their turn come first, and those of
// sessions with a higher priority than the given one last. Equal scores: those
// that leave without a copy first, then the larger, then by session and buffer.
//
// Not thread-safe. Borrows the index, which must be frozen meanwhile.
class VictimWalk {
 public:
  struct Candidate {
    VictimOwner* owner = nullptr;
    Buffer* buffer = nullptr;
    VictimKind kind;
  };

  // Over all sessions that take part.
  VictimWalk(VictimIndex& index, absl::Time now, int priority);
  // Over some.
  VictimWalk(VictimIndex& index, absl::Time now, int priority,
             const std::set<SessionId>& sessions);

  // False when there are no more.
  bool Next(Candidate* candidate);
  // After Next: nothing more of the last candidate's group, or session.
  void LeaveGroup() { leave_group_ = true; }
  void LeaveSession();
  // From now on only candidates of these sessions: first of the groups that
  // have given some already, then of their others.
  void KeepOnly(std::vector<SessionId> sessions);
  // What stood in the way: for VictimIndex::DropHeads.
  absl::Span<VictimGroup* const> stale() const { return stale_; }

 private:
  // Whose buffers leave first, whatever the policy says.
  enum class Rank { kWaits, kOthers, kHigherPriority };
  // The next of a group, or a group's head, which stands for the heads behind
  // it as well.
  struct Source {
    Rank rank = Rank::kOthers;
    double score = 0;
    bool clean = false;
    Bytes size;
    SessionId session;
    BufferId buffer;
    VictimGroup* group = nullptr;
    const VictimOwner* owner = nullptr;
    const Buffer* at = nullptr;  // The buffer.
    bool is_head = false;
    std::set<VictimEntry>::const_iterator entry;  // Of others.

    // Whether `other` is the better one.
    bool operator<(const Source& other) const;
  };

  Rank RankOf(int priority, bool waits) const;
  Source SourceOf(const VictimHeadsKey& key, const VictimHead& head) const;
  void Push(const Source& source);
  static void Fetch(const Source& source);
  // The next head behind `group`'s.
  void PushNextHead(const VictimGroup& group);
  void PushEntry(VictimGroup& group,
                 std::set<VictimEntry>::const_iterator entry);
  void PushGroups(SessionId session);
  void GoOn();

  VictimIndex& index_;
  const absl::Time now_;
  const int priority_;
  // Most walks are short: they need no memory of their own.
  absl::InlinedVector<Source, 64> sources_;  // A heap: the best first.
  Source last_;
  std::vector<SessionId> kept_;  // Whose other groups come later.
  absl::InlinedVector<VictimGroup*, 8> stale_;
  bool leave_group_ = false;
  absl::InlinedVector<const VictimGroup*, 16> opened_;
  absl::InlinedVector<SessionId, 8> left_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_
