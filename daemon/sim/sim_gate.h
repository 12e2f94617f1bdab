// SimGate: a simulated client's gate, as client/src/gate.h.
#ifndef METS_DAEMON_SIM_SIM_GATE_H_
#define METS_DAEMON_SIM_SIM_GATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "daemon/core/types.h"
#include "daemon/sim/world.h"

namespace mets::sim {

// Follows the core's gate orders for one job, whose ops run one after the
// other. Not thread-safe. Borrows the world.
class SimGate {
 public:
  using Send = std::function<void(core::Input)>;
  // Seconds for which ops have waited for memory and copies, in all.
  using Stalled = std::function<double()>;

  SimGate(World* world, SessionId session, std::string device, Send send,
          Stalled stalled)
      : world_(*world),
        session_(session),
        device_(std::move(device)),
        send_(std::move(send)),
        stalled_(std::move(stalled)) {}

  void Follow(const core::GateOrder& order);

  // True when an op may begin, which then counts as running. Else `resume` runs
  // once, when that may have changed.
  bool Enter(std::function<void()> resume);
  void Leave();
  // A step has ended, or another begins: before Enter of its first op.
  void StepEnds();

  // No op may begin now.
  bool closed() const { return state_ == State::kClosed; }
  // Seconds for which an op has waited here, in all.
  double waited() const;
  // One waits now.
  bool waits() const { return resume_ != nullptr; }

 private:
  enum class State { kFree, kTurn, kQuantum, kClosing, kClosed };

  bool BetweenSteps() const {
    return steps_known_ && !running_ && begun_ == step_base_;
  }
  void LearnStep();
  void SetOpen(State state);
  void MeasureStall();
  void Shut(bool step_end);
  void TryFinish();
  void AskForTurn();
  // Shuts what is open and idle, or whose step's end does not come.
  void WatchIdle();
  void WatchUnknownStep();

  World& world_;
  const SessionId session_;
  const std::string device_;
  const Send send_;
  const Stalled stalled_;
  State state_ = State::kFree;
  OrderId order_;
  bool running_ = false;
  bool steps_known_ = false;
  uint64_t begun_ = 0;      // Ops, while they are counted.
  uint64_t step_base_ = 0;  // Of them, when the step began.
  // Ops of a step, once two steps had the same number; 0: not known.
  uint64_t ops_in_step_ = 0;
  uint64_t last_step_ops_ = 0;
  bool step_end_ = false;
  bool told_ended_ = false, told_wanted_ = false;
  double idle_ = 0;
  double opened_ = 0, last_end_ = 0;
  // Since the gate opened.
  double stalled_before_ = 0, stall_ = 0;
  int steps_ended_ = 0;
  uint64_t opening_ = 0;  // Counts what Follow changes: old watches do nothing.
  std::function<void()> resume_;
  double wait_since_ = 0, waited_ = 0;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_GATE_H_
