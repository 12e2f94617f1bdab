// EventStreams: operators who follow the decision log.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_EVENT_STREAMS_H_
#define METS_DAEMON_TRANSPORT_ADMIN_EVENT_STREAMS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/ports.h"
#include "daemon/transport/admin/event_call.h"
#include "mets/v1/events.pb.h"

namespace mets::transport {

// Owns the calls, and wakes them when the log has news. Thread-safe; the log is
// borrowed.
class EventStreams {
 public:
  explicit EventStreams(core::EventLog& log);
  ~EventStreams();
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // The call answers by itself.
  EventCall* Start(const v1::WatchEventsRequest& request);
  // Ends all calls, also those that start later.
  void Abort();

  const core::EventLog& log() const { return log_; }

 private:
  void WakeAll();

  core::EventLog& log_;
  absl::Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<EventCall>> calls_ ABSL_GUARDED_BY(mutex_);
  uint64_t watch_ = 0;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_EVENT_STREAMS_H_
