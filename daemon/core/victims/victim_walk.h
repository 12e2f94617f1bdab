// VictimWalk: goes through a device's possible victims, the best first.
#ifndef METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_
#define METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_

#include <cstdint>
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
    VictimGroup* group = nullptr;
    Buffer* buffer = nullptr;
    Bytes size;

    VictimOwner& owner() const { return *group->owner; }
    const Session& session() const { return *group->owner->session; }
    const VictimKind& kind() const { return group->kind; }
  };
  using Candidates = absl::InlinedVector<Candidate, 32>;

  // Over all sessions that take part.
  VictimWalk(VictimIndex& index, absl::Time now, int priority);
  // Over some.
  VictimWalk(VictimIndex& index, absl::Time now, int priority,
             const std::set<SessionId>& sessions);

  // False when there are no more.
  bool Next(Candidate* candidate);
  // The next ones, until they are so many and have so many bytes (or there are
  // no more). What is going to be looked at is on its way from memory then.
  void Take(Bytes bytes, size_t count, Candidates* candidates);
  // Nothing more of a group, or session.
  void LeaveGroup(const VictimGroup& group) { left_groups_.push_back(&group); }
  void LeaveSession(SessionId session) { left_.push_back(session); }
  // Whether that has been said of a candidate's.
  bool HasLeft(const VictimGroup& group) const;
  // From now on only candidates of these sessions: first of the groups that
  // have given some already, then of their others.
  void KeepOnly(std::vector<SessionId> sessions);
  // What stood in the way: for VictimIndex::DropHeads.
  absl::Span<VictimGroup* const> stale() const { return stale_; }

 private:
  // Whose buffers leave first, whatever the policy says.
  enum class Rank : uint8_t { kWaits, kOthers, kHigherPriority };
  // The next of a group, or a group's head, which stands for the heads behind
  // it as well.
  struct Source {
    double score = 0;
    Rank rank = Rank::kOthers;
    bool clean = false;
    Bytes size;
    SessionId session;
    BufferId buffer;
    VictimGroup* group = nullptr;
    Buffer* at = nullptr;                         // The buffer.
    const VictimHead* head = nullptr;             // Null: it is none.
    size_t better = 0;                            // Heads in its set.
    std::set<VictimEntry>::const_iterator entry;  // Of others.

    // Whether `other` is the better one.
    bool operator<(const Source& other) const;
  };

  Rank RankOf(int priority, bool waits) const;
  Source SourceOf(const VictimHeadsKey& key, const VictimHead& head) const;
  void Push(const Source& source);
  static void FetchHead(const VictimHead& head);
  // The next head behind the last one.
  void PushNextHead();
  void PushEntry(VictimGroup& group,
                 std::set<VictimEntry>::const_iterator entry);
  void PushGroups(SessionId session);
  void FetchBehind();
  void GoOn();

  VictimIndex& index_;
  const absl::Time now_;
  const int priority_;
  // Most walks are short: they need no memory of their own.
  absl::InlinedVector<Source, 64> sources_;  // A heap: the best first.
  Source last_;
  bool opens_last_ = false;  // What stands behind it in its group comes next.
  std::vector<SessionId> kept_;  // Whose other groups come later.
  absl::InlinedVector<VictimGroup*, 8> stale_;
  absl::InlinedVector<const VictimGroup*, 16> opened_;
  absl::InlinedVector<const VictimGroup*, 8> left_groups_;
  absl::InlinedVector<SessionId, 8> left_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_VICTIM_WALK_H_
