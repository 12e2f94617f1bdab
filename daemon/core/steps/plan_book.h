// PlanBook: the plan of one session on one device, and its slots.
#ifndef METS_DAEMON_CORE_STEPS_PLAN_BOOK_H_
#define METS_DAEMON_CORE_STEPS_PLAN_BOOK_H_

#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/steps/step_plan.h"

namespace mets::core {

// A slot that was given with a plan.
struct PlannedSlot {
  OrderId plan;     // The PlanOrder.
  BufferId buffer;  // Whose bytes lie in it, as reported; or none's.
};

// Plain data; PlanKeeper changes it.
struct PlanBook {
  bool due = false;   // The session has said where it is in its step.
  uint64_t task = 0;  // The number of the PlanTask under way; 0: none is.
  // Made, but there was no swap space for it yet.
  std::optional<steps::StepPlan> made;
  OrderId order;     // The last PlanOrder; none: no plan is followed.
  OrderId answered;  // The last one that was answered.
  // What the last task was for.
  uint64_t version = 0;  // StepBook::version()
  Bytes budget;
  absl::Time not_before = absl::InfinitePast();  // For the next task.
  double rate = 0;  // Bytes a second that the last plan moves, both ways.
  // It is not followed, because its moves would slow a higher class down.
  bool held_back = false;
  std::map<SlotId, PlannedSlot> slots;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STEPS_PLAN_BOOK_H_
