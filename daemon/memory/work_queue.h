// WorkQueue: one thread that runs tasks in order.
#ifndef METS_DAEMON_MEMORY_WORK_QUEUE_H_
#define METS_DAEMON_MEMORY_WORK_QUEUE_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mets::memory {

// Runs tasks one after the other in its own thread. Thread-safe. The
// destructor drops what has not begun and waits for what has.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Does not block. A task may add tasks.
  void Add(std::function<void()> task);

 private:
  void Run();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::memory

#endif  // METS_DAEMON_MEMORY_WORK_QUEUE_H_
