// Recordings: which operator's call gets which client's trace.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_RECORDINGS_H_
#define METS_DAEMON_TRANSPORT_ADMIN_RECORDINGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "daemon/transport/sessions/session_registry.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// Takes a recording for an operator. Thread-safe; neither call blocks.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // False when too much waits to be read: the recording is over then.
  virtual bool Write(std::string data) = 0;
  // Nothing follows. Only the first call counts.
  virtual void End(absl::Status status) = 0;
};

// Asks clients to record and passes on what they send; at most one recording
// for each session and device. The core has no part in it. Thread-safe. The
// registry is borrowed. Sinks are called without a lock.
class Recordings {
 public:
  explicit Recordings(SessionRegistry& registry) : registry_(registry) {}

  // Begins a recording of the job's only session on the device (empty: on the
  // only one it uses). NOT_FOUND, FAILED_PRECONDITION: there is none, or
  // several, or it is being recorded; the text says so.
  absl::StatusOr<uint64_t> Begin(const std::string& job,
                                 const std::string& device,
                                 std::shared_ptr<TraceSink> sink);
  // Asks the client to end it; the sink ends once everything has come.
  void Stop(uint64_t recording);
  // Ends it at once; the sink is forgotten.
  void Drop(uint64_t recording);

  // From clients.
  void OnChunk(SessionId session, const v1::TraceChunk& chunk);
  void OnStreamEnded(SessionId session);

  // metsd stops: ends all, and those that would still begin.
  void Abort();

 private:
  struct Recording {
    SessionId session;
    std::string device;
    std::shared_ptr<TraceSink> sink;
  };

  void Order(const Recording& recording, uint64_t id, bool on);

  SessionRegistry& registry_;
  absl::Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Recording> recordings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_RECORDINGS_H_
