#include "daemon/sim/input_work.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "daemon/sim/repeat_program.h"
#include "daemon/sim/step_reporter.h"

namespace mets::sim {
namespace {

// Until a step is known.
constexpr int kRepetitions = 6;

bool UsesWhatLives(const JobOp& op) {
  return std::any_of(op.accesses.begin(), op.accesses.end(), [](const auto& a) {
    return a.kind != steps::AccessKind::kNew;
  });
}

// A job that goes on for ever: one round of it, seen as a circle of ops.
struct Round {
  std::vector<Bytes> live;  // When its ops begin.
  std::vector<bool> uses;   // UsesWhatLives.
  double steps = 0;         // 0: none has been found.

  size_t size() const { return live.size(); }
  size_t LeastLive(size_t from, size_t count) const {
    size_t least = from % size();
    for (size_t i = from; i < from + count; ++i) {
      if (live[i % size()] < live[least]) least = i % size();
    }
    return least;
  }
};

Round LastRound(const JobProgram& repeated, size_t each) {
  Round round;
  StepReporter steps(repeated, SessionId(1), "");
  Bytes live;
  double now = 0, uses = 0;
  double step = 0;  // Ops in the step known last.
  for (size_t i = 0; i < repeated.ops.size(); ++i) {
    const JobOp& op = repeated.ops[i];
    steps::PlanMoves none;
    now += op.gap;
    steps.Begin(now, i, &none);
    if (repeated.ops.size() - i <= each) {
      round.live.push_back(live);
      round.uses.push_back(UsesWhatLives(op));
      uses += round.uses.back();
    }
    for (const steps::Access& access : op.accesses) {
      if (access.kind == steps::AccessKind::kNew) {
        live += repeated.buffers[access.buffer];
      }
    }
    for (uint32_t b : op.frees) live -= repeated.buffers[b];
    now += op.busy;
    steps.End(now, i, &none);
    if (steps.step_ops() > 0) step = steps.step_ops();
  }
  if (step > 0) round.steps = std::round(uses / step);
  return round;
}

// The ops of the round with which steps begin.
std::vector<size_t> FindSteps(const Round& round) {
  std::vector<size_t> first;
  const double length = static_cast<double>(round.size()) / round.steps;
  const auto slack = static_cast<size_t>(length / 4);
  const size_t least = round.LeastLive(0, round.size());
  for (int k = 0; k < static_cast<int>(round.steps); ++k) {
    const auto middle = least + static_cast<size_t>(k * length);
    size_t op = round.LeastLive(middle + round.size() - slack, 2 * slack + 1);
    // What the input work has made is allocated.
    while (!round.uses[op]) op = (op + 1) % round.size();
    first.push_back(op);
  }
  return first;
}

}  // namespace

absl::Status AddInputWork(double share, JobProgram* program) {
  METS_CHECK(share >= 0 && share < 1) << "a share of " << share;
  if (share == 0) return absl::OkStatus();
  const JobProgram repeated = RepeatProgram(*program, kRepetitions);
  const size_t each =
      (repeated.ops.size() - program->ops.size()) / (kRepetitions - 1);
  const Round round = LastRound(repeated, each);
  if (round.steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace '", program->name,
                     "' has no step that repeats, before which input work "
                     "could be"));
  }
  program->input_seconds = program->seconds * share / (1 - share);
  program->seconds += program->input_seconds;
  for (size_t op : FindSteps(round)) {
    // A round ends with the same ops as the program.
    program->ops[program->ops.size() - each + op].gap +=
        program->input_seconds / round.steps;
  }
  return absl::OkStatus();
}

}  // namespace mets::sim
