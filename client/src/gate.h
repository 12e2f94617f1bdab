// Gate: where ops wait while other jobs have their turn on the device.
#ifndef METS_CLIENT_SRC_GATE_H_
#define METS_CLIENT_SRC_GATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/src/step_pauses.h"
#include "client/src/wait_clock.h"
#include "common/base/bytes.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// Follows the daemon's Gate orders for one device. While there are none, the
// gate is open, ops do not touch it, and gating() is all that they load. From
// the first order until the one that says that the gate is not needed any more,
// ops that begin are counted, so that the daemon can be told when the last one
// has ended. What began before and is not counted has ended when `quiet` says
// that no buffer is pinned.
//
// An op that waits here must hold nothing that a running op may wait for: ops
// within ops do not come here.
//
// A turn has ended when no op runs and what the ops left on the program's
// streams has passed: the gate asks for a drain, which must not block, and is
// told of its end by Drained. `before_end` is called then, and TurnEnded is
// sent behind what it sends. If the gate has opened meanwhile, the turn has not
// ended, and the drain was in vain.
//
// Where in its step a program leaves its device idle for the longest time is
// its *pause*: it has a result and does something with it, or waits for input.
//
// States: free; open for a turn (until a step's end) or a quantum; closing (at
// the step's end); closed. An open turn or quantum ends by itself when no op
// has run, and the device was idle, for as long as the order says.
//
// Thread-safe. `send`, `quiet` and `live` are called with the gate's lock, the
// other hooks without it: `drain` and `before_end` in the thread that ends the
// turn, `idle` in any. `waits` counts how long ops wait here.
class Gate {
 public:
  using Send = std::function<void(v1::ClientMessage)>;
  using Quiet = std::function<bool()>;
  struct Ending {
    // False: there is nothing to drain. True: Drained(turn) will be called.
    std::function<bool(uint64_t turn)> drain = [](uint64_t) { return false; };
    std::function<void()> before_end = [] {};
    // What the process has allocated and not freed.
    std::function<Bytes()> live = [] { return Bytes(); };
    // Nothing is left of what the ops put on the program's streams.
    std::function<bool()> idle = [] { return true; };
  };
  Gate(std::string device, Send send, Quiet quiet, WaitClock* waits,
       Ending ending);
  Gate(std::string device, Send send, Quiet quiet, WaitClock* waits)
      : Gate(std::move(device), std::move(send), std::move(quiet), waits,
             Ending()) {}

  bool gating() const { return gating_.load(std::memory_order_relaxed); }
  // No op may begin now.
  bool closed() const { return (word_.load() & kClosed) != 0; }
  // Waits until an op may start, and counts it: each Enter has its Leave.
  void Enter();
  void Leave();
  // The turn has ended, and an op waits for the next. Whoever enters after this
  // sees all that the caller had done before.
  bool Waited();

  // An order that comes behind a later one is nothing any more.
  void Follow(const v1::Gate& order);
  // A step has ended, or another begins.
  void StepEnds();
  // The stream has broken: everybody may go on.
  void Open();
  // It had broken before Follow was called with this order.
  void Revoke(const v1::Gate& order);
  // To be called every few milliseconds: closes what time closes.
  void Poll();
  // The drain of this turn is over.
  void Drained(uint64_t turn);

 private:
  enum class State { kFree, kTurn, kQuantum, kClosing, kClosed };

  bool open() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !closed(); }
  bool BetweenSteps() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCounting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shut(bool step_end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetOpen(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MeasureStall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What keeps the turn from ending, beyond its ops.
  enum class End { kNotYet, kDue, kDraining, kTold };

  // No op runs any more: the end is due.
  void TryFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the end, if it is due.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);
  // In a thread of the program: it does not pause meanwhile.
  void FinishInProgram() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTurn(uint64_t turn) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Ends(uint64_t turn) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return turn == turn_ && end_ == End::kDraining;
  }
  // Tells the daemon that the turn has ended.
  void TellEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskForTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Obey(const v1::Gate& order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The device computes what ops have left.
  void NoteWork() ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseInTime() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LearnStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t SinceBase(uint64_t word) const {
    return OpsApart(step_base_.load(), Begun(word));
  }
  // An op comes after none ran.
  void NoteGap(uint64_t word) ABSL_LOCKS_EXCLUDED(mutex_);
  // Behind so many ops the device was idle for about so long.
  void NotePause(int64_t ns, uint32_t begun)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // word_: the gate is closed; ops begun (modulo 2^31); ops that run.
  static constexpr uint64_t kClosed = uint64_t{1} << 63;
  static constexpr uint64_t kBegun = uint64_t{1} << 32;
  static uint32_t Running(uint64_t word) { return static_cast<uint32_t>(word); }
  static uint32_t Begun(uint64_t word) {
    return static_cast<uint32_t>(word >> 32) & kOpCountMask;
  }

  const std::string device_;
  const Send send_;
  const Quiet quiet_;
  const Ending ending_;
  std::atomic<bool> gating_{false};
  std::atomic<uint64_t> word_{0};
  // When the last op ended, or the device was seen to compute.
  std::atomic<int64_t> worked_ns_{0};
  std::atomic<bool> computed_{false};   // The device, at NoteWork's last look.
  std::atomic<uint32_t> step_base_{0};  // Ops begun when the step began.
  // With so many begun and ended the turn ends.
  std::atomic<uint32_t> end_at_{StepPauses::kNever};

  WaitClock& waits_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kFree;
  uint64_t order_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool uncounted_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 1;  // Counts the gate's openings.
  End end_ ABSL_GUARDED_BY(mutex_) = End::kNotYet;
  bool told_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool step_end_ ABSL_GUARDED_BY(mutex_) = false;
  bool steps_known_ ABSL_GUARDED_BY(mutex_) = false;
  StepPauses pauses_ ABSL_GUARDED_BY(mutex_);
  // Ops begun when the gate opened and ops waited.
  uint32_t resumed_at_ ABSL_GUARDED_BY(mutex_) = StepPauses::kNever;
  // A turn has ended by itself in this step.
  bool turn_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;
  // Since the gate opened: what ops had waited then, steps that ended, and what
  // ops waited until the second of these.
  absl::Duration waited_before_ ABSL_GUARDED_BY(mutex_);
  int steps_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration stalled_ ABSL_GUARDED_BY(mutex_);
  int64_t drain_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // When the drain began.
  int64_t opened_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t close_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // Closing: at the latest.
  int64_t idle_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_GATE_H_
