#include "daemon/sim/step_reporter.h"

#include <map>

namespace mets::sim {
namespace {

constexpr double kFaster = 0.9;  // As in the client (step_watch.h).

// Keys are not 0.
uint64_t KeyOf(uint32_t buffer) { return uint64_t{buffer} + 1; }

}  // namespace

void StepReporter::Begin(double now, size_t index, steps::PlanMoves* moves) {
  const JobOp& op = program_.ops[index];
  std::vector<steps::Touch> touches;
  for (const steps::Access& access : op.accesses) {
    if (access.kind == steps::AccessKind::kNew) continue;
    touches.push_back(
        {KeyOf(access.buffer), access.kind == steps::AccessKind::kWrite});
  }
  op_.reset();
  if (!touches.empty()) {
    stirred_ = true;
    signature_ = recorder_.SignatureOf(op.kind, touches.data(), touches.size());
    op_ = recorder_.OpBegin(absl::Seconds(now), signature_, touches.data(),
                            touches.size());
    if (recorder_.point().boundary) step_began_ = now;
  }
  for (const steps::Access& access : op.accesses) {
    if (access.kind != steps::AccessKind::kNew) continue;
    const Bytes size = program_.buffers[access.buffer];
    if (op_.has_value()) {
      recorder_.Alloc(KeyOf(access.buffer), size, *op_, signature_);
    } else {
      recorder_.Alloc(KeyOf(access.buffer), size);
    }
  }
  if (!follows() || !op_.has_value()) return;
  const steps::StepPoint& point = recorder_.point();
  steps::PlanMoves due;
  follower_->Begin(point.position, point.boundary, &due);
  Append(due, moves);
}

bool StepReporter::Follow(const steps::StepPlan& plan) {
  follower_.reset();
  const steps::StepProgram* program = recorder_.program();
  if (program == nullptr || program->signature != plan.signature || !known()) {
    return false;
  }
  follower_.emplace(*program, plan);
  return true;
}

void StepReporter::Append(const steps::PlanMoves& from,
                          steps::PlanMoves* to) const {
  const auto append = [this](const std::vector<uint32_t>& logical,
                             std::vector<uint32_t>* buffers) {
    for (uint32_t b : logical) {
      const uint64_t key = recorder_.KeyOf(b);
      if (key != 0) buffers->push_back(static_cast<uint32_t>(key - 1));
    }
  };
  append(from.evict, &to->evict);
  append(from.restore, &to->restore);
}

void StepReporter::End(double now, size_t index, steps::PlanMoves* moves) {
  if (op_.has_value()) recorder_.OpEnd(*op_, absl::Seconds(now));
  if (follows()) {
    std::map<uint32_t, bool> used;  // Whether the op has allocated it.
    for (const steps::Access& access : program_.ops[index].accesses) {
      const auto logical = recorder_.LogicalOf(KeyOf(access.buffer));
      if (!logical.has_value()) continue;
      used[*logical] |= access.kind == steps::AccessKind::kNew;
    }
    steps::PlanMoves due;
    for (const auto& [logical, fresh] : used) {
      follower_->Used(logical, fresh, &due);
    }
    Append(due, moves);
  }
  for (uint32_t b : program_.ops[index].frees) recorder_.Free(KeyOf(b));
}

std::vector<core::Input> StepReporter::Report(double now) {
  std::vector<core::Input> inputs;
  const absl::Duration time = absl::Seconds(now);
  const steps::StepProgram* program = recorder_.program();
  const bool another = program != nullptr && !known();
  const bool due = another ? pacer_.step_due(time) : pacer_.progress_due(time);
  if (!stirred_ || !due) return inputs;
  if (another) {
    follower_.reset();
    pacer_.ToldStep(time);
  }
  if (another ||
      (program != nullptr && program->duration < kFaster * told_duration_)) {
    inputs.push_back(core::StepSeen{session_, device_, *program});
    told_program_ = recorder_.program_number();
    told_duration_ = program->duration;
  }
  core::StepProgress progress;
  progress.session = session_;
  progress.device = device_;
  progress.steps = recorder_.point().steps;
  if (known()) {
    progress.signature = program->signature;
    progress.duration = recorder_.summary().duration;
    progress.since_begin = absl::Seconds(now - step_began_);
  }
  // That there is no step is said once.
  if (progress.signature == 0 && told_signature_ == 0) return inputs;
  told_signature_ = progress.signature;
  inputs.push_back(progress);
  stirred_ = false;
  pacer_.ToldProgress(time);
  return inputs;
}

uint32_t StepReporter::LogicalOf(uint32_t buffer) const {
  if (!known()) return 0;
  const std::optional<uint32_t> logical = recorder_.LogicalOf(KeyOf(buffer));
  return logical.has_value() ? *logical + 1 : 0;
}

}  // namespace mets::sim
