// JobEmptier: brings what a job has on the devices into swap space.
#ifndef METS_DAEMON_CORE_OPERATING_JOB_EMPTIER_H_
#define METS_DAEMON_CORE_OPERATING_JOB_EMPTIER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/state.h"
#include "daemon/core/swap/swap_space.h"
#include "daemon/core/victims/reclaimer.h"

namespace mets::core {

// Orders back, once, as many bytes as the job has, guaranteed or not; again
// where swap space had to grow first. What is pinned, fixed or held stays, and
// what the job needs it brings back. Answers (CommandDone) when nothing more is
// on its way, or after the time in which orders must be answered.
//
// Not thread-safe. Borrows the state, the reclaimer and the swap space.
class JobEmptier {
 public:
  JobEmptier(State* state, Reclaimer* reclaimer, const SwapSpace* swap)
      : state_(*state), reclaimer_(*reclaimer), swap_(*swap) {}

  void Begin(uint64_t call, const std::vector<Job*>& jobs);
  // After each Step.
  void Advance();

 private:
  struct Part {
    std::pair<DomainId, std::string> job;
    size_t device;
    Bytes due;  // Yet to be ordered back.
  };
  struct Task {
    uint64_t call;
    absl::Time until;
    Bytes before;
    std::vector<Part> parts;
  };

  // True while something is on its way.
  bool Push(Part& part);
  void Finish(const Task& task);

  State& state_;
  Reclaimer& reclaimer_;
  const SwapSpace& swap_;
  std::vector<Task> tasks_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_OPERATING_JOB_EMPTIER_H_
