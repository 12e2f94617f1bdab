// The core's events and answers as messages.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_EVENT_MESSAGES_H_
#define METS_DAEMON_TRANSPORT_ADMIN_EVENT_MESSAGES_H_

#include <string>

#include "daemon/core/ports.h"
#include "mets/v1/events.pb.h"

namespace mets::transport {

v1::Event ToMessage(const core::EventLog::Entry& entry);
void FillAnswer(const core::WhyAnswer& from, v1::JobAnswer* to);
// The newest eviction, wait, denial and end of a job, oldest first.
void FillLast(const core::EventLog& log, const std::string& job,
              v1::ExplainJobResponse* response);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_EVENT_MESSAGES_H_
