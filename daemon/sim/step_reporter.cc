#include "daemon/sim/step_reporter.h"

#include <algorithm>

#include "common/steps/step_change.h"

namespace mets::sim {
namespace {

constexpr double kProgressEvery = 1;

// Keys are not 0.
uint64_t KeyOf(uint32_t buffer) { return uint64_t{buffer} + 1; }

}  // namespace

void StepReporter::Begin(double now, size_t index) {
  const JobOp& op = program_.ops[index];
  std::vector<steps::Touch> touches;
  for (const steps::Access& access : op.accesses) {
    if (access.kind == steps::AccessKind::kNew) continue;
    touches.push_back(
        {KeyOf(access.buffer), access.kind == steps::AccessKind::kWrite});
  }
  op_.reset();
  if (!touches.empty()) {
    signature_ = recorder_.SignatureOf(touches.data(), touches.size());
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
}

void StepReporter::End(double now, size_t index) {
  if (op_.has_value()) recorder_.OpEnd(*op_, absl::Seconds(now));
  for (uint32_t b : program_.ops[index].frees) recorder_.Free(KeyOf(b));
}

std::vector<core::Input> StepReporter::Report(double now) {
  std::vector<core::Input> inputs;
  const steps::StepProgram* program = recorder_.program();
  if (program != nullptr && recorder_.version() != told_version_) {
    inputs.push_back(core::StepSeen{session_, device_, *program});
    told_version_ = recorder_.version();
    next_progress_ = now;
  }
  TellNeed(&inputs);
  if (now < next_progress_ || told_version_ == 0) return inputs;
  next_progress_ = now + kProgressEvery;
  core::StepProgress progress;
  progress.session = session_;
  progress.device = device_;
  progress.steps = recorder_.point().steps;
  if (program != nullptr) {
    progress.signature = program->signature;
    progress.duration = recorder_.summary().duration;
    progress.since_begin = absl::Seconds(now - step_began_);
  }
  inputs.push_back(progress);
  return inputs;
}

void StepReporter::TellNeed(std::vector<core::Input>* inputs) {
  const steps::StepSummary& summary = recorder_.summary();
  if (summary.signature == 0 || summary.peak_live.is_zero()) return;
  const core::StepNeed need{session_, device_, summary.peak_live,
                            summary.persistent_live, summary.duration};
  if (told_need_.has_value() &&
      !steps::Differ(told_need_->peak, need.peak, need.peak) &&
      !steps::Differ(told_need_->persistent, need.persistent, need.peak) &&
      !steps::Differ(told_need_->step, need.step)) {
    return;
  }
  told_need_ = need;
  inputs->push_back(need);
}

uint32_t StepReporter::LogicalOf(uint32_t buffer) const {
  if (told_version_ == 0 || recorder_.version() != told_version_) return 0;
  const std::optional<uint32_t> logical = recorder_.LogicalOf(KeyOf(buffer));
  return logical.has_value() ? *logical + 1 : 0;
}

}  // namespace mets::sim
