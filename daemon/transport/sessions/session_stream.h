// SessionStream: one control stream of one client.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_SESSION_STREAM_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_SESSION_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/transport/sessions/client_stream.h"
#include "daemon/transport/sessions/outbox.h"
#include "daemon/transport/sessions/rate_limit.h"
#include "daemon/transport/sessions/session_service.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// Reads messages, converts them and posts them; writes what is queued, one
// message at a time. The first message must be a Hello in time.
//
// Owns itself until gRPC says OnDone; the registry shares it while it is a
// session's stream. Thread-safe. A client that does not read until its queue
// is full loses its stream: its session waits, frozen, until it comes back.
class SessionStream : public SessionCall,
                      public ClientStream,
                      public std::enable_shared_from_this<SessionStream> {
 public:
  // Begins to serve a call. `service` and `context` outlive the stream.
  static SessionStream* Start(SessionService& service,
                              grpc::CallbackServerContext* context);

  // ClientStream.
  void Send(v1::DaemonMessage message) override;
  void Close(absl::Status status) override;

  // SessionCall.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  SessionStream(SessionService& service, grpc::CallbackServerContext* context);

  void ArmHelloTimeout();
  // False when the stream is closing.
  bool Parse();
  bool HandleHello();
  bool HandleMessage();
  void ReadNext();
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseLocked(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SessionService& service_;
  grpc::CallbackServerContext* const context_;
  std::shared_ptr<SessionStream> self_;  // Until OnDone.

  // Used by one reaction at a time.
  grpc::ByteBuffer received_;
  v1::ClientMessage incoming_;  // What they say.
  RateLimit rate_;
  grpc::Alarm resume_read_;
  grpc::Alarm hello_timeout_;

  absl::Mutex mutex_;
  SessionId session_ ABSL_GUARDED_BY(mutex_);
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_SESSION_STREAM_H_
