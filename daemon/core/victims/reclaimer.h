// Reclaimer: takes memory back from sessions.
#ifndef METS_DAEMON_CORE_VICTIMS_RECLAIMER_H_
#define METS_DAEMON_CORE_VICTIMS_RECLAIMER_H_

#include "daemon/core/state.h"
#include "daemon/core/victims/evictor.h"
#include "daemon/core/victims/reclaim_goal.h"

namespace mets::core {

// Orders cached memory back first, then buffers. It only orders: bytes come
// back by Release.
//
// Not thread-safe. Borrows the state and the evictor.
class Reclaimer {
 public:
  Reclaimer(State* state, Evictor* evictor)
      : state_(*state), evictor_(*evictor) {}

  // Orders back up to goal.bytes beyond what has been ordered already; with
  // `evict` false, only cached memory. Returns the bytes newly ordered.
  Bytes Reclaim(const ReclaimGoal& goal, bool evict);

  // Orders back what `job` has above its limit on a device once `extra` more
  // bytes are its; returns the bytes that are not on their way then.
  Bytes EnforceLimit(Job& job, size_t device, Bytes extra, bool evict,
                     Tried* tried = nullptr);

  // Goes on with the jobs whose limit was lowered.
  void EnforceLoweredLimits();

 private:
  Bytes Trim(const ReclaimGoal& goal);

  State& state_;
  Evictor& evictor_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_RECLAIMER_H_
