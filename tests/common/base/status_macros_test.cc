#include "common/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>

namespace mets {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(bool ok) {
  if (!ok) return absl::NotFoundError("none");
  return std::make_unique<int>(7);
}

absl::StatusOr<int> Use(bool ok) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<int> value, Make(ok));
  METS_ASSIGN_OR_RETURN(const std::unique_ptr<int> again, Make(ok));
  return *value + *again;
}

absl::Status Check(absl::Status status, bool* reached) {
  METS_RETURN_IF_ERROR(status);
  *reached = true;
  return absl::OkStatus();
}

TEST(StatusMacros, ValuesMoveOut) { EXPECT_EQ(*Use(true), 14); }

TEST(StatusMacros, ErrorsReturn) {
  EXPECT_EQ(Use(false).status(), absl::NotFoundError("none"));
  bool reached = false;
  EXPECT_EQ(Check(absl::InternalError("x"), &reached),
            absl::InternalError("x"));
  EXPECT_FALSE(reached);
  EXPECT_TRUE(Check(absl::OkStatus(), &reached).ok());
  EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace mets
