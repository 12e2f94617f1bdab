// SessionService: the gRPC service of clients.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_SESSION_SERVICE_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/transport/admin/recordings.h"
#include "daemon/transport/sessions/session_registry.h"
#include "mets/v1/session.grpc.pb.h"

namespace mets::transport {

// A call of Connect. In bytes, because where gRPC parses, what cannot be parsed
// looks like the end of the call.
using SessionCall = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

struct SessionServiceOptions {
  Epoch epoch;
  // A stream that has not said Hello by then is closed.
  absl::Duration hello_timeout = absl::Seconds(5);
  // Messages that may wait for one client that does not read.
  size_t outbox_capacity = 4096;
  // A client's messages per second (a message counts once for itself and once
  // for each 4 KiB), and how many may come at once.
  double rate = 20000;
  double burst = 10000;
  int max_streams = 4096;
};

// Serves Connect with one SessionStream for each call. Thread-safe. The
// registry, the recordings and the clock are borrowed and must outlive every
// stream.
class SessionService : public v1::SessionService::WithRawCallbackMethod_Connect<
                           v1::SessionService::Service> {
 public:
  SessionService(SessionServiceOptions options, SessionRegistry& registry,
                 Recordings& recordings, const Clock& clock);

  SessionCall* Connect(grpc::CallbackServerContext* context) override;

  // Waits until no stream is left, or for `time`. True when none is.
  bool AwaitNoStreams(absl::Duration time);

  // --- for the streams ----------------------------------------------------
  const SessionServiceOptions& options() const { return options_; }
  SessionRegistry& registry() { return registry_; }
  Recordings& recordings() { return recordings_; }
  const Clock& clock() const { return clock_; }
  void StreamEnded();
  void CountUnresponsive();

  // Clients whose queue was full since the start.
  int64_t unresponsive_total() const;

 private:
  const SessionServiceOptions options_;
  SessionRegistry& registry_;
  Recordings& recordings_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t unresponsive_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The status as gRPC has it.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_SESSION_SERVICE_H_
