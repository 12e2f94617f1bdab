#include "tf_allocator/core/kernel_needs.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace mets {
namespace {

Need NeedOf(std::initializer_list<uint64_t> sizes) {
  Need need;
  for (uint64_t size : sizes) need.Add(size);
  return need;
}

TEST(KernelNeedsTest, NothingIsKnownBeforeTheFirstRun) {
  KernelNeeds needs;
  Need need;
  EXPECT_FALSE(needs.Find(1, &need));
  EXPECT_FALSE(needs.allocates());
}

TEST(KernelNeedsTest, TheNextRunWithTheSameInputsKnowsWhatTheLastAllocated) {
  KernelNeeds needs;
  needs.Learn(1, NeedOf({10, 20}));
  Need need;
  ASSERT_TRUE(needs.Find(1, &need));
  EXPECT_EQ(need.count, 2u);
  EXPECT_EQ(need.TotalBytes(), 30u);
  EXPECT_TRUE(needs.allocates());
  EXPECT_FALSE(needs.Find(2, &need));
}

TEST(KernelNeedsTest, MoreIsTakenOverAtOnceLessAfterSeveralRuns) {
  KernelNeeds needs;
  Need need;
  needs.Learn(1, NeedOf({10}));
  needs.Learn(1, NeedOf({50}));
  ASSERT_TRUE(needs.Find(1, &need));
  EXPECT_EQ(need.TotalBytes(), 50u);
  needs.Learn(1, NeedOf({5}));
  ASSERT_TRUE(needs.Find(1, &need));
  EXPECT_EQ(need.TotalBytes(), 50u);
  for (int i = 0; i < 10; ++i) needs.Learn(1, NeedOf({5}));
  ASSERT_TRUE(needs.Find(1, &need));
  EXPECT_EQ(need.TotalBytes(), 5u);
}

TEST(KernelNeedsTest, TheOldestSignatureMakesRoom) {
  KernelNeeds needs;
  for (uint64_t i = 1; i <= 5; ++i) needs.Learn(i, NeedOf({i}));
  Need need;
  EXPECT_FALSE(needs.Find(1, &need));
  for (uint64_t i = 2; i <= 5; ++i) EXPECT_TRUE(needs.Find(i, &need)) << i;
}

TEST(KernelNeedsTest, ManyAllocationsAreSummedUp) {
  Need need;
  for (int i = 0; i < 20; ++i) need.Add(7);
  EXPECT_EQ(need.count, Need::kSizes);
  EXPECT_EQ(need.TotalBytes(), 140u);
}

TEST(KernelNeedsTest, ThreadsMayLearnAtOnce) {
  KernelNeeds needs;
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&needs, t] {
      for (int i = 0; i < 10000; ++i) {
        needs.Learn(t, NeedOf({t, t}));
        Need need;
        if (!needs.Find(t, &need)) continue;
        ASSERT_EQ(need.TotalBytes(), 2 * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mets
