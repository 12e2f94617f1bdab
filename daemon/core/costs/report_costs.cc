#include "daemon/core/costs/report_costs.h"

#include <utility>

#include "daemon/core/costs/totals.h"
#include "daemon/core/moves/paced_moves.h"

namespace mets::core {

void NoteCosts(State& state, size_t index, Session& session,
               const Totals& totals) {
  Holding& holding = session.holdings[index];
  const Totals before = holding.totals;
  Totals& now = holding.totals;
  RaiseTotals(totals, &now);
  if (session.recovering) return;
  Device& device = state.devices[index];
  const auto grown = [](Bytes from, Bytes to) {
    return static_cast<double>((to - from).count());
  };
  device.copied_out += grown(before.evicted, now.evicted);
  device.copied_in += grown(before.restored, now.restored);
  StepPace::Steps steps;
  steps.count = now.steps - before.steps;
  if (steps.count == 0) return;
  steps.time = now.step_time - before.step_time;
  steps.wait = now.step_wait - before.step_wait;
  steps.signature = holding.steps.signature();
  const bool alone = ComputesAlone(state, index, session);
  steps.alone = std::exchange(holding.told_alone, alone) && alone;
  holding.pace.Add(steps);
}

void NoteFailure(Job& job, size_t device, Failure failure) {
  ++job.devices[device].failures[static_cast<size_t>(failure)];
}

}  // namespace mets::core
