#include "daemon/app/plan_worker.h"

#include <utility>

#include "daemon/core/planning/planner.h"

namespace mets::app {

void PlanWorker::Perform(core::PlanTask task) {
  worker_.Add([this, task = std::move(task)] {
    sink_.Post(core::MakePlan(task, *policy_));
  });
}

}  // namespace mets::app
