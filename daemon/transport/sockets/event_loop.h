// EventLoop: one thread that waits for descriptors.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_EVENT_LOOP_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mets::transport {

// Runs callbacks in one thread: when a watched descriptor is readable or has
// hung up, when somebody has posted a task, and periodically.
//
// Post and Stop are thread-safe; Watch and Unwatch belong to the loop's thread
// (or to the time before Start). Callbacks may watch and unwatch anything,
// themselves included. A callback that blocks delays all others.
class EventLoop {
 public:
  // Fails when the process has no descriptors left.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  // Stops.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `ready` whenever `fd` is readable, at its end or broken. The
  // descriptor stays the caller's, who unwatches it before closing it.
  absl::Status Watch(int fd, std::function<void()> ready);
  void Unwatch(int fd);

  // Begins. `tick` is called about every `period`.
  void Start(absl::Duration period, std::function<void()> tick);

  // Runs `task` in the loop's thread. Dropped after Stop.
  void Post(std::function<void()> task);

  // Ends the thread and waits for it. Not from a callback.
  void Stop();

 private:
  EventLoop(UniqueFd epoll, UniqueFd wake);

  void Run();
  void RunTasks();
  void Wake();

  const UniqueFd epoll_;
  const UniqueFd wake_;
  absl::Duration period_;
  std::function<void()> tick_;
  // By descriptor; shared, so that a callback may unwatch itself.
  absl::flat_hash_map<int, std::shared_ptr<std::function<void()>>> watched_;
  std::thread thread_;

  absl::Mutex mutex_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_EVENT_LOOP_H_
