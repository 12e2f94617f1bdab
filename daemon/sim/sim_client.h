// SimClient: a client process in virtual time, as libmets would behave.
#ifndef METS_DAEMON_SIM_SIM_CLIENT_H_
#define METS_DAEMON_SIM_SIM_CLIENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_meter.h"
#include "daemon/core/types.h"
#include "daemon/sim/chunk_purse.h"
#include "daemon/sim/job_program.h"
#include "daemon/sim/machine.h"
#include "daemon/sim/sim_gate.h"
#include "daemon/sim/step_reporter.h"
#include "daemon/sim/world.h"

namespace mets::sim {

// What became of a job.
struct JobResult {
  double started = 0, ended = 0;  // Virtual seconds.
  double stall = 0;               // Ops that waited for copies or memory.
  double wait = 0;                // Of it, for answers of the daemon.
  double gate = 0;                // Ops that waited at a closed gate.
  double shared = 0;              // Ops that others' ops slowed down.
  double slowed = 0;              // Ops that others' copies slowed down.
  std::vector<double> repeats;    // When each time over has ended.
  Bytes evicted, restored;
  int64_t requests = 0;
  Bytes peak;  // Most bytes of it that were on the device.
  bool done = false;
  std::string error;
};

// Runs a JobProgram op by op on a Machine: waits at its gate, brings an op's
// buffers back, asks the core for what is missing as client/src/admission.h
// does, with the overdraft token after some rounds, and follows orders.
//
// Not thread-safe. Borrows everything; `to_core` sends an input to the core.
class SimClient {
 public:
  using ToCore = std::function<void(core::Input)>;

  SimClient(World* world, Machine* machine, const JobProgram& program,
            SessionId session, std::string device, ToCore to_core);

  // The session is open: attaches the device and begins.
  void Start();
  // An action of the core for this session has arrived.
  void Take(const core::SessionAction& action);

  const JobResult& result() const { return result_; }
  size_t ops_done() const { return op_; }
  // An op waits at the gate, or for memory or copies.
  bool waits() const { return waiting_ || gate_.waits(); }
  Bytes resident() const {
    return result_.done ? Bytes() : held_ - idle_.bytes();
  }

 private:
  enum class Phase { kNone, kResident, kLeaving, kSwapped, kReturning };
  struct Buffer {
    Bytes size;
    Phase phase = Phase::kNone;
    bool pinned = false, pinned_before = false;  // Now, and at the last report.
    bool dirty = true;
    bool freed = false;    // While a copy of it runs.
    bool by_plan = false;  // It leaves for the plan.
    double last_use = 0;
    SlotId slot;
    Chunks chunks;
    uint64_t copy = 0;  // Number of the copy that may end it.
    bool changed = false;
  };
  struct Eviction {
    core::EvictOrder order;
    // Goes over the candidates twice: the second time with what an op waits
    // for.
    size_t next = 0;
    Bytes given, leaving;
    int running = 0;
    std::vector<core::BufferResult> results;
  };

  // Ops (sim_client.cc).
  bool Gated() const;
  void WatchOp();
  void EndStep();
  void BeginOp();
  void PassGate();
  void Admit();
  void Pin();
  bool FindMemory(std::vector<uint32_t>* returning);
  // What is on the device, with these, is no more than the plan foresees.
  bool IsWithinPlan(const std::vector<uint32_t>& buffers) const;
  void Ask(std::vector<uint32_t> buffers);
  void RunOp();
  void EndOp();
  void NextOp();
  void Free(uint32_t b);
  void Finish();

  // Moves (sim_moves.cc).
  // `done`, when there is one, runs when the copy has ended.
  void Restore(uint32_t b, Chunks chunks, std::function<void()> done = {});
  void Leave(uint32_t b, SlotId slot, std::function<void(bool)> done);

  // The plan (sim_plan.cc).
  void Follow(const core::PlanOrder& order);
  void Plan(const steps::PlanMoves& moves);
  void PlannedEvictions();
  void PlannedRestores();

  // What comes back as a quantum begins (sim_return.cc).
  void ReturnAhead();
  void ReturnSome();
  bool IsToReturn(uint32_t b) const;
  void Return(uint32_t b, Chunks chunks);
  void AskAhead(size_t most);
  void GrantedAhead(const core::Grant& grant);
  void DeniedAhead();

  // Orders (sim_orders.cc).
  void On(const core::Grant& grant);
  void On(const core::Regrant& regrant);
  void On(const core::Deny& deny);
  void On(const core::EvictOrder& order) { Queue(order); }
  void On(const core::TrimOrder& order) { Queue(order); }
  void On(const core::ForgetOrder& order) { Queue(order); }
  void On(const core::PlanOrder& order) { Queue(order); }
  void On(const core::GateOrder& order);
  void On(const core::Refuse& refuse) { Fail(refuse.reason); }
  void On(const core::DeviceReady& ready) { Fail(ready.error); }
  template <typename Other>
  void On(const Other&) {}
  // The first error, or "" for none, is the job's.
  void Fail(const std::string& error) {
    if (result_.error.empty()) result_.error = error;
  }
  // One after the other.
  void Queue(core::SessionAction order);
  void FollowNext();
  void Follow(const core::EvictOrder& order);
  void Follow(const core::TrimOrder& order);
  void Follow(const core::ForgetOrder& order);
  template <typename Other>
  void Follow(const Other&) {}
  // The eviction, until its order is answered.
  void GoOn();
  bool TryEvict(size_t candidate, bool wanted);
  // A waiting op has named it.
  bool Wanted(uint32_t b) const;
  void GiveBack(const Chunks& chunks, OrderId order, bool lent = false);
  // What is idle, for the time until its next turn.
  void Lend();
  void GiveTokensBack();
  core::BufferReport Describe(uint32_t b);
  void Report();
  void ReportSteps();
  void Change(uint32_t b);
  // Without what it has waited.
  double JobTime() const {
    return world_.now() - gate_.waited() - result_.stall;
  }
  double Stalled() const {
    return result_.stall + (waiting_ ? world_.now() - since_ : 0);
  }

  World& world_;
  Machine& machine_;
  const JobProgram& program_;
  const SessionId session_;
  const std::string device_;
  const ToCore to_core_;

  std::vector<Buffer> buffers_;
  ChunkPurse idle_;
  std::map<ChunkId, core::ChunkRef> lent_;
  Bytes held_;  // In chunks, of buffers and idle.
  size_t op_ = 0;
  bool waiting_ = false;  // An op waits for memory or copies.
  bool lacks_memory_ = false;
  bool running_ = false;
  double since_ = 0;  // When it began to wait.
  double asked_ = 0;
  std::optional<RequestId> request_;
  std::vector<uint32_t> asked_for_;  // By the request, range by range.
  int rounds_ = 0;                   // Requests of this op so far.
  int tokens_ = 0;                   // The overdraft token, so often.
  uint64_t last_request_ = 0;
  uint64_t last_copy_ = 0;
  std::vector<uint32_t> changed_;
  bool reporting_ = false;
  std::deque<core::SessionAction> orders_;
  std::optional<Eviction> eviction_;
  SimGate gate_;
  StepReporter steps_;
  steps::StepMeter meter_;
  Bytes live_;  // Of buffers, wherever they are.
  uint64_t reported_version_ = 0;
  std::map<uint32_t, SlotId> plan_slots_;  // By BufferReport::logical.
  Bytes plan_budget_;                      // Zero without a plan.
  std::deque<uint32_t> to_evict_, to_restore_;
  int plan_evicts_ = 0;  // Copies for the plan that are under way.
  int plan_restores_ = 0;
  std::deque<uint32_t> to_return_;  // The next first.
  int returns_ = 0;                 // Copies of these that are under way.
  std::optional<RequestId> ahead_;
  std::vector<uint32_t> asked_ahead_;  // By that request, range by range.
  double had_memory_ = 0;              // When there was some for them.
  JobResult result_;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIM_CLIENT_H_
