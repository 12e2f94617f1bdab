// StepPlan: what leaves and what comes back at which position of a step.
#ifndef METS_COMMON_STEPS_STEP_PLAN_H_
#define METS_COMMON_STEPS_STEP_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/steps/step_program.h"

namespace mets::steps {

// One buffer's absence from the device, within one repetition of a step or
// across its end (then restore_at and use are smaller than evict_after).
struct Absence {
  uint32_t buffer = 0;       // Index into the StepProgram's buffers.
  uint32_t evict_after = 0;  // The op that uses it last before.
  uint32_t restore_at = 0;   // The copy back may begin when this op begins.
  uint32_t use = 0;          // The op that uses it next.
  bool clean = false;        // Leaves without a copy.
  bool returns = true;       // False: it is freed without another use.
};

// Followed by the client, position by position, without asking: evictions begin
// as soon as their op has ended, restores in the order of their uses.
struct StepPlan {
  uint64_t signature = 0;         // Of the StepProgram.
  Bytes budget;                   // What the step has resident at most.
  std::vector<Absence> absences;  // By `use`, then by buffer.
  Bytes evicted;                  // Copied in one repetition.
  Bytes restored;
  absl::Duration duration;  // Estimate for one repetition.
};

// The plan's absences whose buffers and ops are in the step's program; others
// are nonsense.
std::vector<Absence> AbsencesIn(const StepProgram& program,
                                const StepPlan& plan);

// A buffer's way back.
struct PlannedReturn {
  uint32_t at = 0;     // The op at which it may begin.
  uint32_t ahead = 0;  // Ops between that and its use.
  uint32_t buffer = 0;
};

// The returns of absences in a step of so many ops, in the order in which they
// are due: of those that may begin at the same op, the first used first.
// REQUIRES: the absences' ops are of that step.
std::vector<PlannedReturn> ReturnsOf(const std::vector<Absence>& absences,
                                     uint32_t ops);

}  // namespace mets::steps

#endif  // METS_COMMON_STEPS_STEP_PLAN_H_
