// ClientStream: the way to a client, as the rest of the transport sees it.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_CLIENT_STREAM_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_CLIENT_STREAM_H_

#include "absl/status/status.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// Thread-safe. Neither call blocks.
class ClientStream {
 public:
  virtual ~ClientStream() = default;

  // Queues a message; dropped once the stream is closing.
  virtual void Send(v1::DaemonMessage message) = 0;

  // Ends the stream, after what is queued, with a status for the client. Only
  // the first call counts.
  virtual void Close(absl::Status status) = 0;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_CLIENT_STREAM_H_
