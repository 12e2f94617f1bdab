// PlanRunner: moves a device's buffers as its plan says.
#ifndef METS_CLIENT_SRC_PLAN_RUNNER_H_
#define METS_CLIENT_SRC_PLAN_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "client/src/plan_sink.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// Two threads, one for each direction of the bus, that begin with the first
// plan; each makes its moves in the order in which they were due. What is due
// is advice: a move that is late, because of the other direction's (an eviction
// whose buffer is to come back already, or the reverse), is dropped.
//
// A restore for which there is no memory waits, and those behind it, until some
// becomes idle. Neither evictions nor restores wait for an op; ops may
// wait for evictions (Demand), and restores then leave them the memory.
//
// Thread-safe. Calls the mover without its mutex, which is a leaf.
class PlanRunner : public PlanSink {
 public:
  struct Mover {
    // Whatever comes of it.
    std::function<void(uint64_t buffer, const v1::Slot& slot)> evict;
    // False: there is no memory for it now. True: it need not be tried again.
    std::function<bool(uint64_t buffer)> restore;
  };

  explicit PlanRunner(Mover mover) : mover_(std::move(mover)) {}
  ~PlanRunner() override;

  // A plan with these slots is followed from now on. REQUIRES: none is, and
  // none has been since Stop.
  void Start(const v1::Plan& plan);
  // No plan is followed. Returns when no move is under way.
  void Stop();
  bool following() const { return following_.load(std::memory_order_relaxed); }

  // PlanSink. Ignored when no plan is followed.
  void Post(const BufferMoves& moves) override;
  void Drop() override;

  // Memory has become idle, or a buffer has come back without this.
  void SomethingChanged() {
    if (following()) Retry();
  }

  // An op's need of memory, which goes before all restores that have not begun.
  class Demand {
   public:
    explicit Demand(PlanRunner& runner);
    ~Demand();
    Demand(const Demand&) = delete;
    Demand& operator=(const Demand&) = delete;

    // Waits until an eviction has ended. False, at once, when all have ended
    // that were due when the demand began.
    bool AwaitEviction();

   private:
    PlanRunner& runner_;
    uint64_t evictions_;  // Due until then.
  };

 private:
  void RunOut();
  void RunIn();
  void Retry();
  void DropBack(uint64_t buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLeave(uint64_t buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CanRestore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !back_.empty() && demands_ == 0 && tried_ != changes_;
  }

  const Mover mover_;
  std::atomic<bool> following_{false};
  absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, v1::Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::deque<BufferMoves::Leave> leave_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> back_ ABSL_GUARDED_BY(mutex_);
  bool evicting_ ABSL_GUARDED_BY(mutex_) = false;
  bool restoring_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Evictions that were due, and those of them that have ended or were dropped.
  uint64_t due_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  int demands_ ABSL_GUARDED_BY(mutex_) = 0;
  // Counts what may let the first restore succeed; when it was tried last.
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t tried_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread out_, in_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_PLAN_RUNNER_H_
