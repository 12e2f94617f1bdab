// System call errors as absl::Status.
#ifndef METS_COMMON_BASE_ERRNO_STATUS_H_
#define METS_COMMON_BASE_ERRNO_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mets {

// The status for errno value `error` with the text "<text>: <strerror>".
// ENOENT → NOT_FOUND; EEXIST, EADDRINUSE → ALREADY_EXISTS; EACCES, EPERM →
// PERMISSION_DENIED; ENOMEM, ENOSPC, EMFILE, ENFILE, ETOOMANYREFS →
// RESOURCE_EXHAUSTED; EAGAIN, ETIMEDOUT → DEADLINE_EXCEEDED; EPIPE,
// ECONNRESET, ECONNREFUSED, ENOTCONN → UNAVAILABLE; EINVAL, EBADF →
// INVALID_ARGUMENT; all else → INTERNAL.
absl::Status ErrnoToStatus(int error, absl::string_view text);

}  // namespace mets

#endif  // METS_COMMON_BASE_ERRNO_STATUS_H_
