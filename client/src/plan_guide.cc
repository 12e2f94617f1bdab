#include "client/src/plan_guide.h"

#include <algorithm>
#include <optional>

namespace mets::client {
namespace {

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

}  // namespace

PlanGuide::PlanGuide(const steps::StepRecorder& recorder, const v1::Plan& plan,
                     PlanSink* sink)
    : recorder_(recorder),
      sink_(sink),
      version_(recorder.version()),
      follower_(*recorder.program(), ToStepPlan(plan)) {}

bool PlanGuide::Begin() {
  if (recorder_.program() == nullptr || recorder_.version() != version_) {
    sink_->Drop();
    return false;
  }
  const steps::StepPoint& point = recorder_.point();
  follower_.Begin(point.position, point.boundary, &due_);
  PostMoves();
  return true;
}

void PlanGuide::Used(std::vector<uint64_t>* buffers) {
  std::sort(buffers->begin(), buffers->end());
  buffers->erase(std::unique(buffers->begin(), buffers->end()), buffers->end());
  for (uint64_t buffer : *buffers) {
    const std::optional<uint32_t> logical = recorder_.LogicalOf(buffer);
    if (logical.has_value()) follower_.Used(*logical, &due_);
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
