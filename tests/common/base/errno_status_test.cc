#include "common/base/errno_status.h"

#include <errno.h>
#include <gtest/gtest.h>

namespace mets {
namespace {

TEST(ErrnoToStatus, HasTextAndReason) {
  const absl::Status status = ErrnoToStatus(ENOENT, "open /nowhere");
  EXPECT_EQ(status,
            absl::NotFoundError("open /nowhere: No such file or directory"));
}

TEST(ErrnoToStatus, MapsCodes) {
  const auto code = [](int error) { return ErrnoToStatus(error, "x").code(); };
  EXPECT_EQ(code(EADDRINUSE), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(EACCES), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(ETOOMANYREFS), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(EAGAIN), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(code(ECONNREFUSED), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(EBADF), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(EIO), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace mets
