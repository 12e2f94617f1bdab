// Improves a plan by trying.
#ifndef METS_DAEMON_CORE_PLANNING_PLAN_SEARCH_H_
#define METS_DAEMON_CORE_PLANNING_PLAN_SEARCH_H_

#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_plan.h"
#include "daemon/core/planning/absence_chooser.h"
#include "daemon/core/planning/step_profile.h"

namespace mets::core {

// Changes the absences one by one, as long as the estimated step gets shorter
// (hill climbing): one less, one more, one that comes back elsewhere. `seconds`
// is the estimate for them, and becomes the new one. Ends after a number of
// estimates that together look at some million ops, improved or not.
void ImprovePlan(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
                 std::vector<steps::Absence>* absences, double* seconds);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_PLAN_SEARCH_H_
