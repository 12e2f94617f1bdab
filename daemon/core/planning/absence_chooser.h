// Chooses which buffers of a step are away when.
#ifndef METS_DAEMON_CORE_PLANNING_ABSENCE_CHOOSER_H_
#define METS_DAEMON_CORE_PLANNING_ABSENCE_CHOOSER_H_

#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_plan.h"
#include "daemon/core/planning/step_profile.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::core {

// Bytes per second.
struct BusSpeed {
  double out = 0;  // Device to host.
  double in = 0;
  int moves = 1;  // That a client has under way at a time, each way.
};

// Of a copy, besides its bytes: messages, mappings. The bus may copy other
// bytes meanwhile.
inline constexpr double kCopyLatency = 80e-6;

// Of a copy's bytes alone.
inline double CopySeconds(Bytes bytes, double speed) {
  return static_cast<double>(bytes.count()) / speed;
}

// Absences with which no op sees more than `budget` bytes resident: goes
// through the step and, where it would exceed the budget, takes what `policy`
// scores highest among the buffers that the op does not touch; repeats until a
// repetition begins as it ends; then gives up absences that turn out not to be
// needed, the largest first. Each absence is as long as its buffer is unused;
// restore_at equals use (ChooseTimes moves it).
//
// Sorted by `use`, then by buffer. An op that alone needs more than the budget
// gets it: the caller has to look at the profile's largest_op.
std::vector<steps::Absence> ChooseAbsences(const StepProfile& profile,
                                           Bytes budget, const BusSpeed& bus,
                                           const VictimPolicy& policy);

// Each absence that there can be: between any two uses of a buffer. Not sorted.
std::vector<steps::Absence> AllAbsences(const StepProfile& profile);

// Sorts by `use`, then by buffer, and says which of them are clean.
void SortAbsences(const StepProfile& profile,
                  std::vector<steps::Absence>* absences);

// Resident bytes at each op under the absences: a buffer is away between its
// last use and restore_at, both excluded.
std::vector<Bytes> ResidentBytes(const StepProfile& profile,
                                 const std::vector<steps::Absence>& absences);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_ABSENCE_CHOOSER_H_
