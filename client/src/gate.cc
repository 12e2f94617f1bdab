// Invariant: word_'s closed bit is set exactly in kClosed, and only then can an
// op wait. Ops that run when the bit is set are the ones that Leave waits for.
#include "client/src/gate.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace mets::client {
namespace {

// A job whose steps are not known closes at the end of "a step" after this.
constexpr int64_t kUnknownStepNs = 100'000'000;
// After so many steps all that a process uses has come back.
constexpr int kSettledSteps = 2;
// After this a long pause, where it is expected, has begun.
constexpr int64_t kPauseBegunNs = 1'000'000;

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

Gate::Gate(std::string device, Send send, Quiet quiet, WaitClock* waits,
           Ending ending)
    : device_(std::move(device)),
      send_(std::move(send)),
      quiet_(std::move(quiet)),
      ending_(std::move(ending)),
      waits_(*waits) {}

void Gate::Enter() {
  uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    if ((word & kClosed) == 0) {
      // Begun ops may wrap around: not into the closed bit.
      const uint64_t next = ((word + kBegun) & ~kClosed) + 1;
      if (!word_.compare_exchange_weak(word, next)) continue;
      if (Running(word) == 0) NoteGap(word);
      return;
    }
    absl::MutexLock lock(&mutex_);
    if (!open()) {
      const WaitClock::Wait wait(waits_);
      // Where the turn has ended, so has what it left on the streams.
      if (end_ == End::kTold && waiters_ == 0) {
        NotePause(NowNs() - worked_ns_.load(), Begun(word_.load()));
      }
      ++waiters_;
      if (end_ == End::kTold) AskForTurn();
      while (!open()) changed_.Wait(&mutex_);
      --waiters_;
    }
    word = word_.load();
  }
}

void Gate::NoteGap(uint64_t word) {
  const int64_t ns = NowNs() - worked_ns_.load(std::memory_order_relaxed);
  if (ns < StepPauses::kShortestNs || !ending_.idle()) return;
  absl::MutexLock lock(&mutex_);
  // Not what it took to wake who waited for the turn.
  if (Begun(word) != resumed_at_) NotePause(ns, Begun(word));
}

void Gate::NotePause(int64_t ns, uint32_t begun) {
  pauses_.Note(ns, begun, OpsApart(step_base_.load(), begun),
               /*expected=*/begun == end_at_.load(), ending_.live);
}

void Gate::Leave() {
  // Whoever sees that none runs sees this, too.
  worked_ns_.store(NowNs());
  const uint64_t before = word_.fetch_sub(1);
  if (Running(before) != 1) return;
  const auto all_ops_have = [&] { return Begun(before) == end_at_.load(); };
  if ((before & kClosed) == 0 && !all_ops_have()) return;
  const bool idle = all_ops_have() && ending_.idle();
  bool due;
  {
    absl::MutexLock lock(&mutex_);
    const bool all_ops = all_ops_have();  // Others may have learnt meanwhile.
    if (all_ops && pauses_.ends_at_pause() && !idle) {
      pauses_.NoteWait(Begun(before));
      end_at_.store(StepPauses::kNever);
    } else if (all_ops &&
               (state_ == State::kTurn || state_ == State::kClosing)) {
      turn_ended_ |= state_ == State::kTurn;
      Shut(/*step_end=*/true);
    }
    TryFinish();
    due = end_ == End::kDue;
  }
  if (due) FinishInProgram();
}

bool Gate::Waited() {
  absl::MutexLock lock(&mutex_);
  return end_ == End::kTold && waiters_ > 0;
}

bool Gate::BetweenSteps() const {
  const uint64_t word = word_.load();
  return steps_known_ && Running(word) == 0 && Begun(word) == step_base_.load();
}

void Gate::StartCounting() {
  if (state_ != State::kFree) return;
  uncounted_ = true;
  // Ops that were not counted lie behind what was learnt.
  pauses_ = StepPauses();
  end_at_.store(StepPauses::kNever);
  turn_ended_ = false;
  gating_.store(true);
}

void Gate::SetOpen(State state) {
  state_ = state;
  ++turn_;
  end_ = End::kNotYet;
  told_wanted_ = false;
  opened_ns_ = NowNs();
  worked_ns_.store(opened_ns_);
  waited_before_ = waits_.waited();
  steps_ended_ = 0;
  resumed_at_ = waiters_ > 0 ? Begun(word_.load()) : StepPauses::kNever;
  close_ns_ = steps_known_ ? std::numeric_limits<int64_t>::max()
                           : opened_ns_ + kUnknownStepNs;
  word_.fetch_and(~kClosed);
  changed_.SignalAll();
}

void Gate::MeasureStall() {
  if (steps_ended_ < kSettledSteps) stalled_ = waits_.waited() - waited_before_;
}

void Gate::Shut(bool step_end) {
  // Who waits later waits for its turn.
  if (state_ != State::kClosed) MeasureStall();
  state_ = State::kClosed;
  step_end_ = step_end;
  word_.fetch_or(kClosed);
  TryFinish();
}

void Gate::TryFinish() {
  if (state_ != State::kClosed || end_ != End::kNotYet) return;
  if (Running(word_.load()) != 0) return;
  if (uncounted_ && !quiet_()) return;
  uncounted_ = false;
  end_ = End::kDue;
}

void Gate::Finish() {
  uint64_t turn;
  {
    absl::MutexLock lock(&mutex_);
    if (end_ != End::kDue) return;
    end_ = End::kDraining;
    drain_ns_ = NowNs();
    turn = turn_;
  }
  if (!ending_.drain(turn)) EndTurn(turn);
}

void Gate::FinishInProgram() {
  Finish();
  worked_ns_.store(NowNs());
}

void Gate::Drained(uint64_t turn) {
  {
    absl::MutexLock lock(&mutex_);
    if (!Ends(turn)) return;
    // The device has computed until now.
    worked_ns_.fetch_add(NowNs() - drain_ns_, std::memory_order_relaxed);
  }
  EndTurn(turn);
}

void Gate::EndTurn(uint64_t turn) {
  ending_.before_end();
  absl::MutexLock lock(&mutex_);
  if (Ends(turn)) TellEnded();
}

void Gate::TellEnded() {
  end_ = End::kTold;
  v1::ClientMessage message;
  v1::TurnEnded* ended = message.mutable_turn_ended();
  ended->set_device(device_);
  ended->set_order_id(order_);
  ended->set_epoch(epoch_);
  ended->set_computed_us(std::max<int64_t>(worked_ns_.load() - opened_ns_, 0) /
                         1000);
  ended->set_step_end(step_end_);
  ended->set_stalled_us(
      std::max<int64_t>(absl::ToInt64Microseconds(stalled_), 0));
  send_(std::move(message));
  if (waiters_ > 0) AskForTurn();
}

void Gate::AskForTurn() {
  if (told_wanted_) return;
  told_wanted_ = true;
  v1::ClientMessage message;
  v1::TurnWanted* wanted = message.mutable_turn_wanted();
  wanted->set_device(device_);
  wanted->set_order_id(order_);
  wanted->set_epoch(epoch_);
  send_(std::move(message));
}

void Gate::Follow(const v1::Gate& order) {
  bool due;
  {
    absl::MutexLock lock(&mutex_);
    Obey(order);
    due = end_ == End::kDue;
  }
  if (due) Finish();
}

void Gate::Obey(const v1::Gate& order) {
  if (order.epoch() == epoch_ && order.order_id() < order_) return;
  order_ = order.order_id();
  epoch_ = order.epoch();
  told_wanted_ = false;
  if (end_ == End::kTold) end_ = End::kNotYet;  // It is told again.
  const bool step_end = order.moment() == v1::GATE_MOMENT_STEP_END;
  if (order.state() == v1::GATE_STATE_OPEN && order.idle_ms() == 0) {
    return SetFree();
  }
  StartCounting();
  idle_ns_ = int64_t{order.idle_ms()} * 1'000'000;
  if (order.state() == v1::GATE_STATE_OPEN) {
    return SetOpen(step_end ? State::kTurn : State::kQuantum);
  }
  // Where ops were not counted, nobody knows.
  const bool between = state_ != State::kFree && BetweenSteps();
  if (!step_end || state_ == State::kClosed || between) return Shut(step_end);
  state_ = State::kClosing;
  close_ns_ = steps_known_ ? std::numeric_limits<int64_t>::max()
                           : NowNs() + kUnknownStepNs;
}

void Gate::LearnStep() {
  const uint64_t word = word_.load();
  const uint32_t ops = SinceBase(word);
  if (ops == 0) return;
  end_at_.store(pauses_.EndStep(Begun(word), ops, ending_.live()));
  step_base_.store(Begun(word));
}

void Gate::StepEnds() {
  bool due;
  {
    absl::MutexLock lock(&mutex_);
    CountStep();
    due = end_ == End::kDue;
  }
  if (due) FinishInProgram();
}

void Gate::CountStep() {
  steps_known_ = true;
  if (state_ == State::kFree) {
    // Ops are not counted: nothing is known of this step's.
    step_base_.store(Begun(word_.load()));
    return;
  }
  const bool computed = Begun(word_.load()) != step_base_.load();
  LearnStep();
  if (!computed) return;
  MeasureStall();
  ++steps_ended_;
  // One turn a step: where the program pauses, or here.
  const bool ended = std::exchange(turn_ended_, false);
  if ((state_ == State::kTurn && !ended) || state_ == State::kClosing) {
    Shut(/*step_end=*/true);
  }
}

void Gate::Open() {
  absl::MutexLock lock(&mutex_);
  SetFree();
}

void Gate::Revoke(const v1::Gate& order) {
  absl::MutexLock lock(&mutex_);
  if (epoch_ == order.epoch() && order_ == order.order_id()) SetFree();
}

void Gate::SetFree() {
  SetOpen(State::kFree);
  gating_.store(false);
}

void Gate::NoteWork() {
  int64_t worked = worked_ns_.load();
  const uint64_t word = word_.load();
  const int64_t now = NowNs();
  if ((word & kClosed) != 0 || Running(word) != 0 ||
      now - worked < StepPauses::kShortestNs) {
    return;
  }
  const bool computes = !ending_.idle();
  // It may have computed until now, also where it was seen to the last time.
  if (!computed_.exchange(computes) && !computes) return;
  worked_ns_.compare_exchange_strong(worked, now);  // An op may have run.
}

void Gate::Poll() {
  if (!gating()) return;
  NoteWork();
  bool due;
  {
    absl::MutexLock lock(&mutex_);
    CloseInTime();
    due = end_ == End::kDue;
  }
  if (due) Finish();
}

void Gate::CloseInTime() {
  if (state_ == State::kFree) return;
  if (state_ == State::kClosed) return TryFinish();
  const int64_t now = NowNs();
  const bool late = state_ != State::kQuantum && now >= close_ns_;
  const uint64_t word = word_.load();
  // Expected, and not exactly where Leave would have seen it.
  const bool pauses = state_ == State::kTurn && pauses_.last_long() &&
                      !turn_ended_ && end_at_.load() == StepPauses::kNever &&
                      pauses_.PausesLong(SinceBase(word));
  const bool idle = state_ != State::kClosing && Running(word) == 0 &&
                    now - worked_ns_.load() >=
                        (pauses ? std::min(idle_ns_, kPauseBegunNs) : idle_ns_);
  if (!late && !idle) return;
  turn_ended_ |= idle && state_ == State::kTurn && SinceBase(word) != 0;
  Shut(/*step_end=*/false);
}

}  // namespace mets::client
