// Outbox: what waits to be written to one client.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_OUTBOX_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_OUTBOX_H_

#include <cstddef>
#include <deque>

#include "mets/v1/session.pb.h"

namespace mets::transport {

// A bounded queue in which the newest SetLimits and Plan of a device and the
// newest Gate replace older ones that still wait. Not thread-safe.
class Outbox {
 public:
  explicit Outbox(size_t capacity) : capacity_(capacity) {}

  // False when the queue is full; the message is not queued then.
  bool Push(v1::DaemonMessage message);

  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }

  // The oldest message. REQUIRES: not empty.
  v1::DaemonMessage Pop();

 private:
  const size_t capacity_;
  std::deque<v1::DaemonMessage> messages_;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_OUTBOX_H_
