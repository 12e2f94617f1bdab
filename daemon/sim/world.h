// World: virtual time.
#ifndef METS_DAEMON_SIM_WORLD_H_
#define METS_DAEMON_SIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace mets::sim {

// Runs events in the order of their times, equal ones in the order in which
// they were added: two runs are the same. Not thread-safe.
class World {
 public:
  double now() const { return now_; }  // Seconds.
  absl::Time time() const { return absl::UnixEpoch() + absl::Seconds(now_); }

  // Runs `event` at `at` (now, when that has passed).
  void At(double at, std::function<void()> event) {
    events_.push({at > now_ ? at : now_, ++last_, std::move(event)});
  }
  void After(double delay, std::function<void()> event) {
    At(now_ + delay, std::move(event));
  }

  // Runs the next event; false when there is none.
  bool RunNext() {
    if (events_.empty()) return false;
    // Moved out just before it goes.
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.at;
    event.run();
    return true;
  }

 private:
  struct Event {
    double at;
    uint64_t number;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::make_pair(at, number) >
             std::make_pair(other.at, other.number);
    }
  };

  std::priority_queue<Event> events_;
  uint64_t last_ = 0;
  double now_ = 0;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_WORLD_H_
