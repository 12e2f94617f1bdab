// Plans how a job's step runs in less memory than it needs.
#ifndef METS_DAEMON_CORE_PLANNING_PLANNER_H_
#define METS_DAEMON_CORE_PLANNING_PLANNER_H_

#include "absl/status/statusor.h"
#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"
#include "daemon/core/planning/absence_chooser.h"
#include "daemon/core/types.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::core {

struct PlanGoal {
  Bytes budget;
  BusSpeed bus;
};

// The plan for a step that shall not have more than goal.budget bytes resident;
// without absences when it fits. Whose buffers are away is the policy's choice,
// or those that are used farthest in the future, or are unused for longest.
//
// A second choice is how much of the budget stays free for buffers that come
// back early: more of it moves more bytes, less of it lets ops wait. Of these
// choices with several such margins, the plans with the shortest estimated
// steps are improved by trying; the best of them is it (among nearly equal
// ones, the one that moves least).
//
// RESOURCE_EXHAUSTED when one op alone needs more than the budget; the message
// says how much.
absl::StatusOr<steps::StepPlan> MakePlan(const steps::StepProgram& program,
                                         const PlanGoal& goal,
                                         const VictimPolicy& policy);

// The answer to a task.
PlanMade MakePlan(const PlanTask& task, const VictimPolicy& policy);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_PLANNER_H_
