// Messages about training steps → inputs of the core.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_STEP_FROM_CLIENT_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_STEP_FROM_CLIENT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/types.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// As FromClient. INVALID_ARGUMENT for what has no meaning; whether it can be
// true is the core's question.
absl::StatusOr<std::optional<core::Input>> StepFromClient(
    const v1::StepProgram& message, SessionId session);
absl::StatusOr<std::optional<core::Input>> StepFromClient(
    const v1::StepDigest& message, SessionId session);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_STEP_FROM_CLIENT_H_
