// PlanKeeper: which sessions follow which plans.
#ifndef METS_DAEMON_CORE_STEPS_PLAN_KEEPER_H_
#define METS_DAEMON_CORE_STEPS_PLAN_KEEPER_H_

#include <set>
#include <utility>

#include "daemon/core/state.h"
#include "daemon/core/swap/swap_space.h"

namespace mets::core {

// Swapping within a step. A session whose step needs more than it may have gets
// a plan of what leaves and comes back where in the step, with slots for it,
// and follows it without asking. It is planned anew when the step is another
// one, or the memory for it has changed, and ends when everything fits. Nobody
// paces what a plan moves: one that moves more than may move for its class
// while a higher class computes ends, until no such class computes.
//
// A plan changes nothing but the time at which buffers move: what a client does
// beside it, and what is taken from it, goes on as without.
//
// Not thread-safe. Borrows the state and the swap space.
class PlanKeeper {
 public:
  PlanKeeper(State* state, SwapSpace* swap) : state_(*state), swap_(*swap) {}

  // The session has said where it is in its step, and which buffers are which.
  void Consider(Session& session, size_t device);
  void OnMade(const PlanMade& input);
  // Its PlanOrder was answered. `failed`: it is not followed.
  void OnAnswered(Session& session, const Order& order, bool failed);
  // There may be more swap space.
  void OnSwapSpace();

 private:
  // Bytes that the session's step may have.
  Bytes Budget(const Session& session, size_t device) const;
  void Ask(Session& session, size_t device, Bytes budget);
  // Sends the plan that was made, if there are slots for it.
  void SendMade(Session& session, size_t device);
  void SendPlan(Session& session, size_t device, PlanOrder action);
  void EndPlan(Session& session, size_t device);
  // Ends what may be followed again later.
  void HoldBack(Session& session, size_t device);
  bool TakeSlots(Session& session, size_t device, const steps::StepPlan& plan,
                 PlanOrder* action);

  State& state_;
  SwapSpace& swap_;
  uint64_t last_task_ = 0;
  // Whose plans lack swap space.
  std::set<std::pair<SessionId, size_t>> waiting_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STEPS_PLAN_KEEPER_H_
