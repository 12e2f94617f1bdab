#include "client/src/plan_guide.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mets::client {

steps::StepPlan ToStepPlan(const v1::Plan& plan) {
  steps::StepPlan result;
  result.signature = plan.step_signature();
  result.budget = Bytes(static_cast<int64_t>(plan.budget_bytes()));
  for (const v1::PlanAbsence& absence : plan.absences()) {
    steps::Absence& to = result.absences.emplace_back();
    to.buffer = absence.buffer();
    to.evict_after = absence.evict_after();
    to.restore_at = absence.restore_at();
    to.use = absence.use();
    to.returns = absence.returns();
  }
  return result;
}

PlanGuide::PlanGuide(const steps::StepRecorder& recorder, const v1::Plan& plan,
                     PlanSink* sink)
    : recorder_(recorder),
      sink_(sink),
      program_(recorder.program_number()),
      follower_(*recorder.program(), ToStepPlan(plan)) {}

void PlanGuide::Begin() {
  if (recorder_.program_number() != program_) return;
  const steps::StepPoint& point = recorder_.point();
  follower_.Begin(point.position, point.boundary, &due_);
  PostMoves();
}

void PlanGuide::Used(const std::vector<UsedBuffer>& buffers) {
  if (recorder_.program_number() != program_) return;
  // Two buffers are one logical one where one replaces the other.
  used_.clear();
  for (const UsedBuffer& used : buffers) {
    const std::optional<uint32_t> logical = recorder_.LogicalOf(used.buffer);
    if (logical.has_value()) used_.push_back({*logical, !used.fresh});
  }
  std::sort(used_.begin(), used_.end());  // Its allocation first.
  for (size_t i = 0; i < used_.size(); ++i) {
    const auto [logical, old] = used_[i];
    if (i > 0 && used_[i - 1].first == logical) continue;
    follower_.Used(logical, !old, &due_);
  }
  PostMoves();
}

void PlanGuide::PostMoves() {
  if (due_.evict.empty() && due_.restore.empty()) return;
  for (uint32_t logical : due_.evict) {
    const uint64_t buffer = recorder_.KeyOf(logical);
    if (buffer != 0) moves_.leave.push_back({buffer, logical});
  }
  for (uint32_t logical : due_.restore) {
    const uint64_t buffer = recorder_.KeyOf(logical);
    if (buffer != 0) moves_.back.push_back(buffer);
  }
  due_.evict.clear();
  due_.restore.clear();
  if (!moves_.empty()) sink_->Post(moves_);
  moves_.leave.clear();
  moves_.back.clear();
}

}  // namespace mets::client
