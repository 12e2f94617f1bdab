#include "common/base/check.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mets {
namespace {

TEST(CheckDeathTest, FailureShowsConditionAndValues) {
  const int free = -3;
  EXPECT_DEATH(METS_CHECK(free >= 0) << "free " << free,
               "check_test.cc:.*METS_CHECK failed: free >= 0 free -3");
}

TEST(CheckDeathTest, BadStatusIsShown) {
  EXPECT_DEATH(METS_CHECK_OK(absl::NotFoundError("no cheese")), "no cheese");
  EXPECT_DEATH(METS_CHECK_OK(absl::StatusOr<int>(absl::NotFoundError("gone"))),
               "gone");
}

TEST(Check, ValuesAreNotEvaluatedOnSuccess) {
  int evaluated = 0;
  METS_CHECK(true) << ++evaluated;
  METS_CHECK_OK(absl::OkStatus());
  METS_CHECK_OK(absl::StatusOr<int>(1));
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, BindsLikeAStatement) {
  bool other = false;
  if (false)
    METS_CHECK(false);
  else
    other = true;
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace mets
