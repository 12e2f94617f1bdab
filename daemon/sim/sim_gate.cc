#include "daemon/sim/sim_gate.h"

#include <utility>

namespace mets::sim {
namespace {

// As in the client: a step whose end is not known is taken to end after this.
constexpr double kUnknownStep = 0.1;
constexpr int kSettledSteps = 2;  // As in the client.
constexpr double kRounding = 1e-9;

}  // namespace

void SimGate::Follow(const core::GateOrder& order) {
  ++opening_;
  order_ = order.order;
  told_ended_ = told_wanted_ = false;
  const bool step_end = order.moment == core::GateMoment::kStepEnd;
  if (order.open && order.idle == absl::ZeroDuration()) {
    SetOpen(State::kFree);
    return;
  }
  idle_ = absl::ToDoubleSeconds(order.idle);
  if (order.open) {
    SetOpen(step_end ? State::kTurn : State::kQuantum);
    WatchIdle();
    if (step_end) WatchUnknownStep();
    return;
  }
  if (!step_end || state_ == State::kClosed || BetweenSteps()) {
    Shut(step_end);
    return;
  }
  state_ = State::kClosing;
  WatchUnknownStep();
}

bool SimGate::Enter(std::function<void()> resume) {
  if (state_ != State::kClosed) {
    running_ = true;
    if (state_ != State::kFree) ++begun_;
    return true;
  }
  wait_since_ = world_.now();
  resume_ = std::move(resume);
  if (told_ended_) AskForTurn();
  return false;
}

void SimGate::LearnStep() {
  const uint64_t ops = begun_ - step_base_;
  if (ops == 0) return;
  ops_in_step_ = ops == last_step_ops_ ? ops : 0;
  last_step_ops_ = ops;
  step_base_ = begun_;
}

void SimGate::StepEnds() {
  steps_known_ = true;
  if (state_ == State::kFree) {
    // Ops are not counted: nothing is known of this step's.
    step_base_ = begun_;
    return;
  }
  const bool computed = begun_ != step_base_;
  LearnStep();
  if (!computed) return;
  MeasureStall();
  ++steps_ended_;
  if (state_ == State::kTurn || state_ == State::kClosing) {
    Shut(/*step_end=*/true);
  }
}

void SimGate::Leave() {
  running_ = false;
  last_end_ = world_.now();
  const bool all_ops = ops_in_step_ != 0 && begun_ - step_base_ == ops_in_step_;
  if (state_ == State::kClosed) {
    TryFinish();
  } else if (all_ops && (state_ == State::kTurn || state_ == State::kClosing)) {
    Shut(/*step_end=*/true);
  } else if (state_ != State::kFree) {
    WatchIdle();
  }
}

double SimGate::waited() const {
  return waited_ + (resume_ ? world_.now() - wait_since_ : 0);
}

void SimGate::SetOpen(State state) {
  state_ = state;
  opened_ = last_end_ = world_.now();
  stalled_before_ = stalled_();
  steps_ended_ = 0;
  if (!resume_) return;
  waited_ = waited();
  world_.After(0, std::exchange(resume_, nullptr));
}

void SimGate::MeasureStall() {
  if (steps_ended_ < kSettledSteps) stall_ = stalled_() - stalled_before_;
}

void SimGate::Shut(bool step_end) {
  if (state_ != State::kClosed) MeasureStall();
  state_ = State::kClosed;
  step_end_ = step_end;
  TryFinish();
}

void SimGate::TryFinish() {
  if (told_ended_ || running_) return;
  told_ended_ = true;
  core::TurnEnded ended;
  ended.session = session_;
  ended.device = device_;
  ended.order = order_;
  ended.computed = absl::Seconds(last_end_ - opened_);
  ended.step_end = step_end_;
  ended.stalled = absl::Seconds(stall_);
  send_(ended);
  if (resume_) AskForTurn();
}

void SimGate::AskForTurn() {
  if (std::exchange(told_wanted_, true)) return;
  send_(core::TurnWanted{session_, device_, order_});
}

void SimGate::WatchIdle() {
  world_.After(idle_, [this, opening = opening_] {
    const bool open = state_ == State::kTurn || state_ == State::kQuantum;
    if (opening != opening_ || !open || running_) return;
    if (world_.now() - last_end_ >= idle_ - kRounding) Shut(false);
  });
}

void SimGate::WatchUnknownStep() {
  if (steps_known_) return;
  world_.After(kUnknownStep, [this, opening = opening_] {
    const bool waits = state_ == State::kTurn || state_ == State::kClosing;
    if (opening == opening_ && waits) Shut(false);
  });
}

}  // namespace mets::sim
