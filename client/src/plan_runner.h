// PlanRunner: moves a device's buffers as its plan says.
#ifndef METS_CLIENT_SRC_PLAN_RUNNER_H_
#define METS_CLIENT_SRC_PLAN_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "client/src/plan_sink.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// Threads for each direction of the bus, that begin with the first plan; moves
// of a direction begin in the order in which they were due. Where one thread
// maps or unmaps, another one's copy may keep the bus busy. What is due is
// advice: a move that is late, because of the other direction's (an eviction
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
    // Calls `has_memory` as soon as it has: the next restore may begin then.
    std::function<bool(uint64_t buffer, absl::FunctionRef<void()> has_memory)>
        restore;
  };

  // `moves`: that may be under way at a time, each way.
  PlanRunner(Mover mover, int moves)
      : mover_(std::move(mover)), moves_(moves) {}
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
    uint64_t last_;  // Of the evictions that were due then.
  };

 private:
  struct Eviction {
    uint64_t number;  // Counts all that were ever due.
    BufferMoves::Leave leave;
  };

  void RunOut();
  void RunIn();
  void Retry();
  void DropBack(uint64_t buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLeave(uint64_t buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeBack(uint64_t buffer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CanRestore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !back_.empty() && !trying_ && demands_ == 0 && tried_ != changes_;
  }
  // An eviction up to this one has not ended.
  bool Lasts(uint64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (!leave_.empty() && leave_.front().number <= number) ||
           (!evicting_.empty() && *evicting_.begin() <= number);
  }

  const Mover mover_;
  const int moves_;
  std::atomic<bool> following_{false};
  absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, v1::Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::deque<Eviction> leave_ ABSL_GUARDED_BY(mutex_);
  std::deque<uint64_t> back_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> evicting_ ABSL_GUARDED_BY(mutex_);  // Their numbers.
  int restoring_ ABSL_GUARDED_BY(mutex_) = 0;
  bool trying_ ABSL_GUARDED_BY(mutex_) = false;  // It may have no memory.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Evictions that were due; counts those that have ended or were dropped.
  uint64_t due_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  int demands_ ABSL_GUARDED_BY(mutex_) = 0;
  // Counts what may let the first restore succeed; when it was tried last.
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t tried_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_PLAN_RUNNER_H_
