// ReclaimGoal: how much memory is to come back, and from whom.
#ifndef METS_DAEMON_CORE_VICTIMS_RECLAIM_GOAL_H_
#define METS_DAEMON_CORE_VICTIMS_RECLAIM_GOAL_H_

#include "daemon/core/state.h"

namespace mets::core {

struct ReclaimGoal {
  size_t device = 0;
  Bytes bytes;
  // For whom: its own guarantee does not protect it from itself. Not null.
  const Job* requester = nullptr;
  // Null: from every job.
  const Job* only = nullptr;
  // Gets what is ordered, unless null.
  Tried* tried = nullptr;
  bool commanded = false;  // By an operator.
  // None: from every session. It looks in its own cache by itself, where it
  // need not wait for its device.
  SessionId asker = SessionId();
};

// What the guarantee of `job` keeps while it is active. What has been ordered
// back is not kept.
Bytes KeptByGuarantee(const State& state, const Job& job,
                      const ReclaimGoal& goal);

// The most that may be taken from `job` now: all else that it has.
Bytes Takable(const State& state, const Job& job, const ReclaimGoal& goal);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_RECLAIM_GOAL_H_
