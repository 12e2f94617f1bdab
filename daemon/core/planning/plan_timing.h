// When the copies of a plan run, and how long a step takes with them.
#ifndef METS_DAEMON_CORE_PLANNING_PLAN_TIMING_H_
#define METS_DAEMON_CORE_PLANNING_PLAN_TIMING_H_

#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_plan.h"
#include "daemon/core/planning/absence_chooser.h"
#include "daemon/core/planning/step_profile.h"

namespace mets::core {

// Sets each absence's restore_at: early enough that its copy and those of the
// uses before it end in time on the bus, but never so early that an op would
// see more than `budget` bytes, the bytes on their way out included.
void ChooseTimes(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
                 std::vector<steps::Absence>* absences);

// Seconds that one repetition takes when a client follows the absences: copies
// in both directions beside the ops, ops that wait for their buffers and for
// room. REQUIRES: sorted by `use`.
double EstimateDuration(const StepProfile& profile, Bytes budget,
                        const BusSpeed& bus,
                        const std::vector<steps::Absence>& absences);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_PLAN_TIMING_H_
