// What clients say, as the core's inputs.
#ifndef METS_DAEMON_TRANSPORT_SESSIONS_FROM_CLIENT_H_
#define METS_DAEMON_TRANSPORT_SESSIONS_FROM_CLIENT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/types.h"
#include "mets/v1/session.pb.h"

namespace mets::transport {

// Version of the protocol that this daemon speaks.
inline constexpr uint32_t kProtocolVersion = 1;

// Checks a stream's first message: version, token size, job name, amounts.
// FAILED_PRECONDITION for a version that is not supported, INVALID_ARGUMENT
// for all else; the texts are for the user.
absl::Status CheckHello(const v1::Hello& hello);

// Converts a message. Whether its ids exist is the core's question; here every
// field must have a possible value.
//
// nullopt for what needs no input: answers to orders of another epoch, and
// messages for parts that this daemon does not have. INVALID_ARGUMENT, naming
// the field, for values that no client of METS sends.
absl::StatusOr<std::optional<core::Input>> FromClient(
    const v1::ClientMessage& message, SessionId session, Epoch epoch);

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SESSIONS_FROM_CLIENT_H_
