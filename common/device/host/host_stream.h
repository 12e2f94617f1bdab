// HostStream: one stream of a host device.
#ifndef METS_COMMON_DEVICE_HOST_HOST_STREAM_H_
#define METS_COMMON_DEVICE_HOST_HOST_STREAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace mets {

// A worker thread that runs tasks in order. Tasks are numbered 1, 2, 3, …
// from a start given at creation. A task's error belongs to its number; the
// errors of the last kMaxFailures failed tasks are kept.
//
// Thread-safe. The destructor runs what is queued, then ends the thread. Not
// usable in a forked child, not even to destroy.
class HostStream {
 public:
  using Task = std::function<absl::Status()>;

  // Numbers begin behind `last`. RESOURCE_EXHAUSTED when no thread can be made.
  static absl::StatusOr<std::unique_ptr<HostStream>> Start(uint64_t last);
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream();

  // Queues `task`; returns its number.
  uint64_t Submit(Task task);
  // A number behind all that is queued; its error is the first error since
  // the last Record.
  uint64_t Record();
  uint64_t last_number() const;

  // True when task `number` has ended; its error.
  absl::StatusOr<bool> Poll(uint64_t number);
  // Waits until it has.
  absl::Status Wait(uint64_t number);

 private:
  static constexpr size_t kMaxFailures = 1024;

  explicit HostStream(uint64_t last) : submitted_(last), completed_(last) {}
  void Run();
  // Runs `task`; the empty task is Record's.
  absl::Status RunTask(Task task);
  void Complete(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ErrorOf(uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t submitted_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> completed_;  // Written with mutex_ held.
  std::map<uint64_t, absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  absl::Status since_record_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_HOST_HOST_STREAM_H_
