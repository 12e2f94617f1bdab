#include "common/base/errno_status.h"

#include <errno.h>
#include <string.h>

#include "absl/strings/str_cat.h"

namespace mets {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case EADDRINUSE:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS:
      return absl::StatusCode::kResourceExhausted;
    case EAGAIN:
    case ETIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ENOTCONN:
      return absl::StatusCode::kUnavailable;
    case EINVAL:
    case EBADF:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrnoToStatus(int error, absl::string_view text) {
  char buffer[128];
  // GNU's strerror_r: may return a static text instead of `buffer`.
  const char* reason = strerror_r(error, buffer, sizeof(buffer));
  return absl::Status(CodeOf(error), absl::StrCat(text, ": ", reason));
}

}  // namespace mets
