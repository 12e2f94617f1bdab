// The slots of a session's plans, and which buffers' bytes lie in them.
#ifndef METS_DAEMON_CORE_STEPS_PLAN_SLOTS_H_
#define METS_DAEMON_CORE_STEPS_PLAN_SLOTS_H_

#include "daemon/core/state.h"

namespace mets::core {

// The client moves buffers to the slots of its plan and back without asking,
// and reports it. A slot belongs to a logical buffer of the step: buffers of
// the client take its place one after the other. Slots of an earlier plan stay
// until nothing lies in them.

// The bytes of `buffer` lie in `slot` of a plan from now on; none: in no such
// slot. A slot that is not one of the holding's plans counts as none.
void SetPlanned(State& state, Holding& holding, Buffer& buffer, SlotId slot);

// Frees the slots of all plans but `plan` in which nothing lies. Nothing may be
// written to them any more.
void FreeUnusedSlots(State& state, Holding& holding, OrderId plan);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STEPS_PLAN_SLOTS_H_
