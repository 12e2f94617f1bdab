// WaitClock: how long a process's ops have waited.
#ifndef METS_CLIENT_SRC_WAIT_CLOCK_H_
#define METS_CLIENT_SRC_WAIT_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mets::client {

// Time during which at least one op waits counts once. Thread-safe.
class WaitClock {
 public:
  // An op waits while this lives.
  class Wait {
   public:
    explicit Wait(WaitClock& clock) : clock_(clock) { clock_.Enter(); }
    ~Wait() { clock_.Leave(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitClock& clock_;
  };

  // In all, up to now. Takes no lock.
  absl::Duration waited() const;

 private:
  void Enter();
  void Leave();

  absl::Mutex mutex_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // Written with the lock. since_ns_: 0 while no op waits.
  std::atomic<int64_t> since_ns_{0};
  std::atomic<int64_t> waited_ns_{0};
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_WAIT_CLOCK_H_
