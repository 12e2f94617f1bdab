// VictimWalk: goes through a device's possible victims, the best first.
#ifndef METS_DAEMON_CORE_VICTIM_WALK_H_
#define METS_DAEMON_CORE_VICTIM_WALK_H_

#include <queue>
#include <set>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "daemon/core/victim_index.h"

namespace mets::core {

// A merge of the index's groups by score: it looks at the heads, and opens a
// group only when its first buffer is the best of all. Buffers of sessions with
// a higher priority than the given one come last. Equal scores: those that
// leave without a copy first, then the larger, then by session and buffer.
//
// Not thread-safe. Borrows the index, which must be frozen meanwhile.
class VictimWalk {
 public:
  struct Candidate {
    const Session* session = nullptr;
    Buffer* buffer = nullptr;
    VictimKind kind;
  };

  // Over all sessions that take part.
  VictimWalk(const VictimIndex& index, absl::Time now, int priority);
  // Over some.
  VictimWalk(const VictimIndex& index, absl::Time now, int priority,
             const std::set<SessionId>& sessions);

  // False when there are no more.
  bool Next(Candidate* candidate);
  // After Next: nothing more of the last candidate's group, or session.
  void LeaveGroup() { leave_group_ = true; }
  void LeaveSession();
  // From now on only candidates of these sessions.
  void KeepOnly(const std::vector<SessionId>& sessions);

 private:
  // The next of a group, or (with `heads`) of the heads of several.
  struct Source {
    bool later = false;
    double score = 0;
    bool clean = false;
    const VictimGroup* group = nullptr;
    std::set<VictimEntry>::const_iterator entry;
    const VictimHeads* heads = nullptr;
    VictimHeads::const_iterator head;

    // Whether `other` is the better one.
    bool operator<(const Source& other) const;
  };

  void Push(Source source);
  void PushHead(const VictimHeads& heads, VictimHeads::const_iterator head);
  void PushEntry(const VictimGroup& group,
                 std::set<VictimEntry>::const_iterator entry);
  void PushGroups(SessionId session);
  void GoOn();

  const VictimIndex& index_;
  const absl::Time now_;
  const int priority_;
  std::priority_queue<Source> sources_;
  Source last_;
  bool leave_group_ = false;
  absl::flat_hash_set<const VictimGroup*> opened_;
  absl::flat_hash_set<SessionId> left_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIM_WALK_H_
