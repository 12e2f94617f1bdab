// DecisionLog: what the core has decided, for those who ask.
#ifndef METS_DAEMON_APP_DECISIONS_DECISION_LOG_H_
#define METS_DAEMON_APP_DECISIONS_DECISION_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"
#include "daemon/app/decisions/allowance.h"
#include "daemon/core/ports.h"

namespace mets::app {

struct DecisionLogOptions {
  Bytes decisions = MiB(4);  // Kept of them, and...
  Bytes details = MiB(1);    // ...of details (IsDetail).
  // Of one job, at a time and per second: a job that does nothing but fail must
  // not push out what others did. Of moves and details as many, apart: they
  // must not keep its other events out.
  double burst = 500;
  double per_second = 100;
};

// Keeps the newest events, within bounds of memory, and wakes watchers from a
// thread of its own. Thread-safe; watchers end before the log does.
class DecisionLog : public core::EventLog {
 public:
  explicit DecisionLog(DecisionLogOptions options = DecisionLogOptions());
  ~DecisionLog() override;

  // Does not block, nor wait for a watcher. Times do not go back.
  void Add(std::vector<core::Event> events);

  std::vector<Entry> Recent(uint64_t after, const std::string& job,
                            size_t most) const override;
  uint64_t Watch(std::function<void()> wake) override;
  void Unwatch(uint64_t watch) override;

  // Events that were too many of one job, and were not kept.
  int64_t dropped() const;

 private:
  // Newest entries within `most` bytes.
  struct Ring {
    Bytes most;
    Bytes bytes;
    std::deque<Entry> entries;
  };
  // Whether one more event of its job is kept now.
  bool Allowed(const core::Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(core::Event event, Ring* ring)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const DecisionLogOptions options_;
  mutable absl::Mutex mutex_;
  Ring decisions_ ABSL_GUARDED_BY(mutex_);
  Ring details_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  // By job, and whether they are moves or details.
  absl::flat_hash_map<std::pair<std::string, bool>, Allowance> allowances_
      ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  absl::Mutex watch_mutex_;  // Taken while watchers are called.
  uint64_t last_watch_ ABSL_GUARDED_BY(watch_mutex_) = 0;
  std::map<uint64_t, std::function<void()>> watches_
      ABSL_GUARDED_BY(watch_mutex_);
  std::thread thread_;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_DECISIONS_DECISION_LOG_H_
