// Evictor: chooses, across processes, whose buffers leave.
#ifndef METS_DAEMON_CORE_VICTIMS_EVICTOR_H_
#define METS_DAEMON_CORE_VICTIMS_EVICTOR_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "daemon/core/state.h"
#include "daemon/core/swap/swap_space.h"
#include "daemon/core/victims/reclaim_goal.h"
#include "daemon/core/victims/victim_walk.h"

namespace mets::core {

// Candidates are the resident, unpinned buffers of sessions that can follow
// orders and have no such order yet, if they are movable, or held and their
// session waits at its gate, in the order of the device's
// VictimIndex: the policy's over all processes, but jobs that wait for their
// turn come first and jobs of higher priority than the requester's last,
// whatever the policy says, and an active job's guarantee is left alone. The
// best are taken until the goal is reached, with spares behind (half as many
// bytes more, at least 4 buffers), because the client knows better what is
// pinned; each session gets one order with its share.
//
// Costs O(log n) for each victim, besides the best of each size class.
//
// Not thread-safe. Borrows the state and the swap space.
class Evictor {
 public:
  Evictor(State* state, SwapSpace* swap) : state_(*state), swap_(*swap) {}

  // Orders up to goal.bytes; returns the bytes ordered (less when fewer could
  // be found, and why is in the device's obstacle).
  Bytes Evict(const ReclaimGoal& goal);

 private:
  // One session's share.
  struct Share {
    Session* session = nullptr;
    VictimOwner* owner = nullptr;
    Bytes target;
    Bytes named;   // Sizes of all candidates.
    Bytes copied;  // Of the target: what is not clean.
    struct Named {
      Buffer* buffer;
      bool reused;  // Its slot.
    };
    absl::InlinedVector<Named, 6> buffers;
  };
  struct Round {
    Bytes chosen;  // Without spares.
    Bytes spare;
    size_t spares = 0;
    // Few, like `takable`: looked through, they cost less than maps.
    absl::InlinedVector<Share, 16> shares;
    // Domains that lack swap space, that of the best candidate first.
    std::vector<SwapWish> postponed;
    // Sizes for which domains had no slot.
    std::map<DomainId, Bytes> lacks;
    absl::InlinedVector<std::pair<const Job*, Bytes>, 4> takable;
    bool only_spares = false;
    Bytes kept;    // By guarantees.
    Bytes silent;  // Of sessions that do not answer.
    bool untold = false;
  };

  using Candidate = VictimWalk::Candidate;

  void Gather(const ReclaimGoal& goal, VictimWalk* walk, Round* round);
  // Says what is not to be looked at again by leaving it.
  void Choose(const Candidate& candidate, const ReclaimGoal& goal,
              VictimWalk* walk, Round* round);
  static Share* FindShare(Round& round, SessionId session);
  // What may be taken from the job yet.
  Bytes& TakableOf(const Job& job, const ReclaimGoal& goal, Round* round) const;
  // The most that the session may lose yet.
  Bytes Allowance(const Session& session, const ReclaimGoal& goal,
                  Round* round) const;
  bool LacksSwap(const Candidate& candidate, const ReclaimGoal& goal,
                 VictimWalk* walk, Round* round);
  void Take(const Candidate& candidate, const ReclaimGoal& goal, bool reused,
            Round* round);
  void NoteSessions(const ReclaimGoal& goal, Round* round);
  void AskForLife(size_t device, SessionId session, Holding* holding);
  bool Enough(const ReclaimGoal& goal, const Round& round) const;
  // Returns what the session's domain lacks now.
  Bytes Postpone(const Session& session, Bytes size, Round* round) const;
  bool SlotsCome(const ReclaimGoal& goal, const SwapWish& wish) const;
  void GrowSwap(const ReclaimGoal& goal, const Round& round);
  void Issue(const ReclaimGoal& goal, Share& share);
  void NoteObstacle(const ReclaimGoal& goal, const Round& round);

  State& state_;
  SwapSpace& swap_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_EVICTOR_H_
