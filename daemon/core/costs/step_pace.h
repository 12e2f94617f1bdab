// StepPace: how much slower a process's steps are than when it is alone.
#ifndef METS_DAEMON_CORE_COSTS_STEP_PACE_H_
#define METS_DAEMON_CORE_COSTS_STEP_PACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace mets::core {

// Compares the steps of a process with its own uncontended ones: those that ran
// while nobody else computed on the device, without what they waited. As long
// as there were none, all its steps count, without what they waited; what
// others cost it while it computed does not show then.
//
// Not thread-safe.
class StepPace {
 public:
  // What the process did since it reported last.
  struct Steps {
    int64_t count = 0;
    absl::Duration time;  // Of all of them, from beginning to beginning.
    absl::Duration wait;  // Of that: ops waited for a turn, memory or copies.
    // Of the step that repeats; another one is compared with its own kind. 0:
    // not known, as the one before.
    uint64_t signature = 0;
    bool alone = false;  // Nobody else computed.
  };
  // Reports without steps change nothing.
  void Add(const Steps& steps);

  // The median uncontended step; zero: nothing is known.
  absl::Duration uncontended() const;
  // The median of the last reports' mean steps, with all waits; zero likewise.
  // A pause of the program counts in one of them.
  absl::Duration recent() const;
  // recent() ÷ uncontended(), at least 1; 0: nothing is known.
  double slowdown() const;

 private:
  // A report comes about once a second.
  static constexpr size_t kRecent = 10;
  static constexpr size_t kSamples = 15;

  uint64_t signature_ = 0;
  std::deque<absl::Duration> recent_, alone_, computing_;  // A step each.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_STEP_PACE_H_
