#include "common/device/chunk_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mets {
namespace {

using ::testing::HasSubstr;

TEST(ChunkBudgetTest, OnlyTheClassesAreSizesOfChunks) {
  const ChunkBudget budget(MiB(10), {MiB(1), MiB(4)}, "pool");
  EXPECT_TRUE(budget.CheckClass(MiB(4)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(budget.CheckClass(MiB(2))));
}

TEST(ChunkBudgetTest, ChunksNeverAddUpToMoreThanTheTotal) {
  ChunkBudget budget(MiB(6), {MiB(1), MiB(4)}, "pool");
  EXPECT_TRUE(budget.Reserve(MiB(4)).ok());
  const absl::Status refused = budget.Reserve(MiB(4));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the pool of 6 MiB has only 2 MiB left"));
  EXPECT_EQ(budget.left(), MiB(2));
  budget.Unreserve(MiB(4));
  EXPECT_TRUE(budget.Reserve(MiB(4)).ok());
}

}  // namespace
}  // namespace mets
