#include "daemon/policy/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::policy {
namespace {

TEST(RegistryTest, EveryKnownNameMakesThePolicyOfThatName) {
  for (const std::string& name : PolicyNames()) {
    auto policy = MakePolicy(name);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ((*policy)->name(), name);
  }
}

TEST(RegistryTest, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const auto policy = MakePolicy("magic");
  EXPECT_TRUE(absl::IsInvalidArgument(policy.status()));
  EXPECT_THAT(
      std::string(policy.status().message()),
      testing::AllOf(testing::HasSubstr("magic"), testing::HasSubstr("lru")));
}

}  // namespace
}  // namespace mets::policy
