#include "daemon/core/planning/planner.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/planning/plan_search.h"
#include "daemon/core/planning/plan_timing.h"
#include "daemon/core/planning/step_profile.h"

namespace mets::core {
namespace {

// Of the budget.
constexpr double kMargins[] = {0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3};
constexpr size_t kImproved = 6;
// Steps that differ by less are equally fast.
constexpr double kNearly = 1.005;

void CountBytes(const StepProfile& profile, steps::StepPlan* plan) {
  plan->evicted = plan->restored = Bytes();
  for (const steps::Absence& absence : plan->absences) {
    if (profile.buffer(absence.buffer).uses.empty()) continue;
    const Bytes size = profile.size(absence.buffer);
    if (!absence.clean) plan->evicted += size;
    if (absence.returns) plan->restored += size;
  }
}

// A step's future is known, so these two are tried beside the policy's choice.
//
// Farthest next use: moves least (Belady 1966).
class FarthestUse : public VictimPolicy {
 public:
  std::string name() const override { return "farthest use"; }
  double Key(const VictimFacts& facts) const override {
    return absl::ToDoubleSeconds(facts.next_use - absl::UnixEpoch());
  }
  double Score(absl::Time now, const VictimFacts& facts) const override {
    return absl::ToDoubleSeconds(facts.next_use - now);
  }
};

// Longest absence: leaves most time for the copies.
class LongestAbsence : public VictimPolicy {
 public:
  std::string name() const override { return "longest absence"; }
  double Key(const VictimFacts& facts) const override {
    return absl::ToDoubleSeconds(facts.next_use - facts.last_use);
  }
  double Score(absl::Time, const VictimFacts& facts) const override {
    return Key(facts);
  }
};

steps::StepPlan PlanWithMargin(const StepProfile& profile, const PlanGoal& goal,
                               const VictimPolicy& policy, double margin) {
  const Bytes chosen(static_cast<int64_t>(
      static_cast<double>(goal.budget.count()) * (1 - margin)));
  steps::StepPlan plan;
  plan.signature = profile.program().signature;
  plan.budget = goal.budget;
  plan.absences = ChooseAbsences(
      profile, std::max(chosen, profile.largest_op()), goal.bus, policy);
  ChooseTimes(profile, goal.budget, goal.bus, &plan.absences);
  CountBytes(profile, &plan);
  plan.duration = absl::Seconds(
      EstimateDuration(profile, goal.budget, goal.bus, plan.absences));
  return plan;
}

void AddPlans(const StepProfile& profile, const PlanGoal& goal,
              const VictimPolicy& policy, std::vector<steps::StepPlan>* plans) {
  for (double margin : kMargins) {
    plans->push_back(PlanWithMargin(profile, goal, policy, margin));
  }
}

// Place of the fastest; of nearly equal ones, of the one that moves least.
size_t Best(const std::vector<steps::StepPlan>& plans) {
  absl::Duration best = absl::InfiniteDuration();
  for (const steps::StepPlan& plan : plans)
    best = std::min(best, plan.duration);
  const auto first =
      std::min_element(plans.begin(), plans.end(),
                       [&](const steps::StepPlan& a, const steps::StepPlan& b) {
                         const bool slow_a = a.duration > best * kNearly;
                         const bool slow_b = b.duration > best * kNearly;
                         if (slow_a != slow_b) return slow_b;
                         return a.evicted + a.restored < b.evicted + b.restored;
                       });
  return static_cast<size_t>(first - plans.begin());
}

steps::StepPlan Improved(const StepProfile& profile, const PlanGoal& goal,
                         steps::StepPlan plan) {
  double seconds = absl::ToDoubleSeconds(plan.duration);
  ImprovePlan(profile, goal.budget, goal.bus, &plan.absences, &seconds);
  plan.duration = absl::Seconds(seconds);
  CountBytes(profile, &plan);
  return plan;
}

}  // namespace

absl::StatusOr<steps::StepPlan> MakePlan(const steps::StepProgram& program,
                                         const PlanGoal& goal,
                                         const VictimPolicy& policy) {
  const StepProfile profile(program);
  if (profile.largest_op() > goal.budget) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "one op of the step needs ", FormatBytes(profile.largest_op()),
        " at once, more than the ", FormatBytes(goal.budget),
        " that the job may have"));
  }
  if (profile.peak() <= goal.budget) {
    steps::StepPlan plan;
    plan.signature = program.signature;
    plan.budget = goal.budget;
    plan.duration = absl::Seconds(profile.duration());
    return plan;
  }
  const FarthestUse farthest;
  const LongestAbsence longest;
  std::vector<steps::StepPlan> plans;
  AddPlans(profile, goal, farthest, &plans);
  AddPlans(profile, goal, longest, &plans);
  AddPlans(profile, goal, policy, &plans);
  std::stable_sort(
      plans.begin(), plans.end(),
      [](const auto& a, const auto& b) { return a.duration < b.duration; });
  std::vector<steps::StepPlan> improved;
  for (size_t i = 0; i < plans.size() && improved.size() < kImproved; ++i) {
    if (i > 0 && plans[i].duration == plans[i - 1].duration &&
        plans[i].evicted == plans[i - 1].evicted) {
      continue;  // The same.
    }
    improved.push_back(Improved(profile, goal, plans[i]));
  }
  return improved[Best(improved)];
}

PlanMade MakePlan(const PlanTask& task, const VictimPolicy& policy) {
  const BusSpeed bus{task.bus_bytes_per_second, task.bus_bytes_per_second,
                     task.moves};
  return {task.session, task.device, task.number,
          MakePlan(*task.program, {task.budget, bus}, policy)};
}

}  // namespace mets::core
