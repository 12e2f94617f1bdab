#include "common/steps/step_plan.h"

#include <algorithm>
#include <tuple>

namespace mets::steps {

std::vector<Absence> AbsencesIn(const StepProgram& program,
                                const StepPlan& plan) {
  std::vector<Absence> absences;
  for (const Absence& absence : plan.absences) {
    if (absence.buffer < program.buffers.size() &&
        absence.evict_after < program.ops.size() &&
        absence.use < program.ops.size() &&
        absence.restore_at < program.ops.size()) {
      absences.push_back(absence);
    }
  }
  return absences;
}

std::vector<PlannedReturn> ReturnsOf(const std::vector<Absence>& absences,
                                     uint32_t ops) {
  std::vector<PlannedReturn> returns;
  for (const Absence& absence : absences) {
    if (!absence.returns) continue;
    returns.push_back({absence.restore_at,
                       (absence.use + ops - absence.restore_at) % ops,
                       absence.buffer});
  }
  std::sort(returns.begin(), returns.end(),
            [](const PlannedReturn& a, const PlannedReturn& b) {
              return std::tie(a.at, a.ahead, a.buffer) <
                     std::tie(b.at, b.ahead, b.buffer);
            });
  return returns;
}

}  // namespace mets::steps
