// EventCall: one operator's WatchEvents.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_EVENT_CALL_H_
#define METS_DAEMON_TRANSPORT_ADMIN_EVENT_CALL_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/ports.h"
#include "mets/v1/events.pb.h"

namespace mets::transport {

// Writes the newest events of the log and then, if asked to follow, those that
// come. Takes from the log only what it can write: a reader that is slower than
// the log misses events, and sees that by their numbers.
//
// Owned by EventStreams until gRPC says OnDone. Thread-safe.
class EventCall : public grpc::ServerWriteReactor<v1::Event> {
 public:
  EventCall(const core::EventLog& log, const v1::WatchEventsRequest& request,
            std::function<void()> on_done);

  void Begin();
  // The log has news.
  void Wake();
  void End(const absl::Status& status);

  // ServerWriteReactor.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Take(uint64_t after, size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const core::EventLog& log_;
  const v1::WatchEventsRequest request_;
  const std::function<void()> on_done_;

  absl::Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // Up to this number.
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::Event> queue_ ABSL_GUARDED_BY(mutex_);  // First: on its way.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_EVENT_CALL_H_
