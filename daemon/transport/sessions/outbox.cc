#include "daemon/transport/sessions/outbox.h"

#include <algorithm>
#include <utility>

namespace mets::transport {
namespace {

bool Replaces(const v1::DaemonMessage& newer, const v1::DaemonMessage& older) {
  if (newer.message_case() != older.message_case()) return false;
  switch (newer.message_case()) {
    case v1::DaemonMessage::kSetLimits:
      return newer.set_limits().device() == older.set_limits().device();
    case v1::DaemonMessage::kPlan:
      return newer.plan().device() == older.plan().device();
    case v1::DaemonMessage::kGate:
      return newer.gate().device() == older.gate().device();
    default:
      return false;
  }
}

}  // namespace

bool Outbox::Push(v1::DaemonMessage message) {
  // The newer one keeps the older one's place: what was queued between them
  // does not depend on either.
  const auto old = std::find_if(messages_.begin(), messages_.end(),
                                [&message](const v1::DaemonMessage& queued) {
                                  return Replaces(message, queued);
                                });
  if (old != messages_.end()) {
    *old = std::move(message);
    return true;
  }
  if (messages_.size() >= capacity_) return false;
  messages_.push_back(std::move(message));
  return true;
}

v1::DaemonMessage Outbox::Pop() {
  v1::DaemonMessage message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

}  // namespace mets::transport
