// The core's actions, as messages for clients.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_TO_CLIENT_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_TO_CLIENT_H_

#include <cstdint>

#include "common/base/ids.h"
#include "daemon/core/types.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// One overload for each action that becomes a message. `fd_seq` is the last
// descriptor message that was sent before; 0: none.
v1::DaemonMessage ToMessage(const core::Welcome& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::DeviceReady& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::Grant& action, Epoch epoch,
                            uint64_t fd_seq);
v1::DaemonMessage ToMessage(const core::ShareAnswer& action, Epoch epoch,
                            uint64_t fd_seq);
v1::DaemonMessage ToMessage(const core::Regrant& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::Deny& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::EvictOrder& action, Epoch epoch,
                            uint64_t fd_seq);
v1::DaemonMessage ToMessage(const core::PlanOrder& action, Epoch epoch,
                            uint64_t fd_seq);
v1::DaemonMessage ToMessage(const core::TrimOrder& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::ForgetOrder& action, Epoch epoch,
                            uint64_t fd_seq);
v1::DaemonMessage ToMessage(const core::GateOrder& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::LimitsChanged& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::SendNotice& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::SendBye& action, Epoch epoch);
v1::DaemonMessage ToMessage(const core::Refuse& action, Epoch epoch);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_TO_CLIENT_H_
