#include "daemon/core/planning/step_profile.h"

#include <algorithm>

#include "common/base/check.h"

namespace mets::core {

StepProfile::StepProfile(const steps::StepProgram& program)
    : program_(program),
      accesses_(program.ops.size()),
      buffers_(program.buffers.size()),
      within_(steps::AllocatedWithin(program)) {
  Bytes live;
  for (const steps::StepBuffer& buffer : program.buffers) {
    if (buffer.persistent) live += buffer.size;
  }
  double clock = 0;
  for (uint32_t op = 0; op < ops(); ++op) {
    const steps::StepOp& step_op = program.ops[op];
    Bytes touched, fresh;
    for (const steps::Access& access : step_op.accesses) {
      if (access.kind == steps::AccessKind::kReplaced) {
        touched += size(access.buffer);
        continue;
      }
      accesses_[op].push_back(access);
      std::vector<Use>& uses = buffers_[access.buffer].uses;
      const bool writes = access.kind != steps::AccessKind::kRead;
      const bool is_new = access.kind == steps::AccessKind::kNew;
      if (is_new && frees(access.buffer)) fresh += size(access.buffer);
      if (uses.empty() || uses.back().op != op) {
        uses.push_back({op, writes, is_new});
        touched += size(access.buffer);
        continue;
      }
      if (uses.back().fresh != is_new) touched += size(access.buffer);
      uses.back().writes |= writes;
      uses.back().fresh &= is_new;
    }
    fresh_.push_back(fresh);
    live += fresh;
    largest_op_ = std::max(largest_op_, touched);
    live_.push_back(live);
    peak_ = std::max(peak_, live);
    for (uint32_t b : step_op.frees) {
      buffers_[b].free_after = op;
      if (frees(b)) live -= size(b);
    }
    start_.push_back(std::max(clock, absl::ToDoubleSeconds(step_op.start)));
    clock = start_.back() + absl::ToDoubleSeconds(step_op.busy);
    end_.push_back(clock);
  }
  duration_ = std::max(clock, absl::ToDoubleSeconds(program.duration));
}

StepProfile::Excess::Excess(const StepProfile& profile, Bytes budget) {
  double sum = 0;
  for (uint32_t op = 0; op < profile.ops(); ++op) {
    before_.push_back(sum);
    const double until =
        op + 1 < profile.ops() ? profile.start(op + 1) : profile.duration();
    const Bytes over = std::max(Bytes(), profile.live(op) - budget);
    sum += static_cast<double>(over.count()) * (until - profile.start(op));
  }
  before_.push_back(sum);
}

double StepProfile::Excess::Between(uint32_t from, uint32_t to) const {
  if (to > from) return before_[to] - before_[from + 1];
  return before_.back() - before_[from + 1] + before_[to];
}

}  // namespace mets::core
