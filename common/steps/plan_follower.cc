#include "common/steps/plan_follower.h"

#include <algorithm>
#include <tuple>

namespace mets::steps {
namespace {

// For each op and buffer: how many ops up to it, itself included, use the
// buffer.
class UseCounts {
 public:
  explicit UseCounts(const StepProgram& program)
      : uses_(program.buffers.size()) {
    for (uint32_t op = 0; op < program.ops.size(); ++op) {
      for (const Access& access : program.ops[op].accesses) {
        std::vector<uint32_t>& uses = uses_[access.buffer];
        if (uses.empty() || uses.back() != op) uses.push_back(op);
      }
    }
  }

  uint32_t UpTo(uint32_t op, uint32_t buffer) const {
    const std::vector<uint32_t>& uses = uses_[buffer];
    return static_cast<uint32_t>(
        std::upper_bound(uses.begin(), uses.end(), op) - uses.begin());
  }

 private:
  std::vector<std::vector<uint32_t>> uses_;
};

}  // namespace

PlanFollower::PlanFollower(const StepProgram& program, const StepPlan& plan)
    : first_leave_(program.buffers.size() + 1),
      counts_(program.buffers.size()) {
  for (uint32_t b = 0; b < counts_.size(); ++b) {
    counts_[b].persistent = program.buffers[b].persistent;
  }
  const UseCounts counts(program);
  const uint32_t ops = static_cast<uint32_t>(program.ops.size());
  const std::vector<Absence> followed = AbsencesIn(program, plan);
  for (const Absence& absence : followed) {
    leaves_.push_back(
        {absence.buffer, counts.UpTo(absence.evict_after, absence.buffer)});
  }
  returns_ = ReturnsOf(followed, ops);
  std::sort(leaves_.begin(), leaves_.end(), [](Leave a, Leave b) {
    return std::tie(a.buffer, a.uses) < std::tie(b.buffer, b.uses);
  });
  for (const Leave& leave : leaves_) ++first_leave_[leave.buffer + 1];
  for (size_t b = 1; b < first_leave_.size(); ++b) {
    first_leave_[b] += first_leave_[b - 1];
  }
}

void PlanFollower::Begin(uint32_t position, bool boundary, PlanMoves* moves) {
  if (boundary) {
    if (repetition_ > 0) ReturnUpTo(UINT32_MAX, moves);
    ++repetition_;
    next_return_ = 0;
    // What no op uses.
    for (const Leave& leave : leaves_) {
      if (leave.uses == 0) moves->evict.push_back(leave.buffer);
    }
  }
  if (repetition_ > 0) ReturnUpTo(position, moves);
}

void PlanFollower::ReturnUpTo(uint32_t position, PlanMoves* moves) {
  while (next_return_ < returns_.size() &&
         returns_[next_return_].at <= position) {
    moves->restore.push_back(returns_[next_return_++].buffer);
  }
}

void PlanFollower::Used(uint32_t buffer, bool fresh, PlanMoves* moves) {
  if (repetition_ == 0 || buffer >= counts_.size()) return;
  Count& count = counts_[buffer];
  // What lives in one repetition only may yet be allocated before it begins.
  if (count.persistent ? count.repetition != repetition_ : fresh) {
    count.uses = 0;
  }
  count.repetition = repetition_;
  ++count.uses;
  for (uint32_t i = first_leave_[buffer]; i < first_leave_[buffer + 1]; ++i) {
    if (leaves_[i].uses == count.uses) moves->evict.push_back(buffer);
  }
}

}  // namespace mets::steps
