#include "client/src/range_cache.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace mets::client {
namespace {

class RangeCacheTest : public testing::Test {
 protected:
  Buffer* Range(Bytes size) {
    ranges_.emplace_back();
    ranges_.back().size = size.count();
    return &ranges_.back();
  }
  std::deque<Buffer> ranges_;
  RangeCache cache_;
};

TEST_F(RangeCacheTest, FindsTheBestFit) {
  Buffer* small = Range(MiB(4));
  Buffer* large = Range(KiB(4500));
  cache_.Put(large);
  cache_.Put(small);
  EXPECT_EQ(cache_.TakeFit(MiB(4)), small);
  EXPECT_EQ(cache_.TakeFit(MiB(4)), large);
  EXPECT_EQ(cache_.TakeFit(MiB(4)), nullptr);
  EXPECT_TRUE(cache_.empty());
}

TEST_F(RangeCacheTest, WastesAtMostAnEighth) {
  cache_.Put(Range(MiB(9) + KiB(64)));
  EXPECT_EQ(cache_.TakeFit(MiB(8)), nullptr);
  cache_.Put(Range(MiB(9)));
  EXPECT_NE(cache_.TakeFit(MiB(8)), nullptr);
}

TEST_F(RangeCacheTest, WastesLittleOfMuch) {
  cache_.Put(Range(MiB(66) + KiB(64)));
  EXPECT_EQ(cache_.TakeFit(MiB(64)), nullptr);
  cache_.Put(Range(MiB(66)));
  EXPECT_NE(cache_.TakeFit(MiB(64)), nullptr);
}

TEST_F(RangeCacheTest, PrefersARangeThatNoOtherStreamMayTouch) {
  const Stream s = {StreamHandle{1}, 1};
  Buffer* fitting = Range(MiB(1));
  Buffer* shared = Range(MiB(1));
  Buffer* others = Range(MiB(1));
  fitting->streams = 1;
  shared->streams = 1 | 2;
  others->streams = 2;
  cache_.Put(fitting);
  cache_.Put(shared);
  cache_.Put(others);
  EXPECT_EQ(cache_.TakeFit(MiB(1), s), fitting);
  EXPECT_EQ(cache_.TakeFit(MiB(1), s), others) << "the last one put";
}

TEST_F(RangeCacheTest, ReusesTheLastFreedAndGivesBackTheOldest) {
  Buffer* first = Range(MiB(1));
  Buffer* second = Range(MiB(1));
  Buffer* third = Range(MiB(1));
  cache_.Put(first);
  cache_.Put(second);
  cache_.Put(third);
  EXPECT_EQ(cache_.oldest(), first);
  EXPECT_EQ(cache_.TakeFit(MiB(1)), third);
  cache_.Take(first);
  EXPECT_EQ(cache_.oldest(), second);
  EXPECT_EQ(cache_.bytes(), MiB(1));
  EXPECT_EQ(cache_.TakeFit(MiB(1)), second);
}

TEST_F(RangeCacheTest, ShowsTheSmallestThatAreLargeEnough) {
  Buffer* small = Range(MiB(1));
  Buffer* older = Range(MiB(4));
  Buffer* newer = Range(MiB(4));
  Buffer* large = Range(MiB(32));
  for (Buffer* range : {large, older, small, newer}) cache_.Put(range);
  EXPECT_EQ(cache_.AtLeast(MiB(2)), (std::vector<Buffer*>{newer, large}));
  cache_.Take(newer);
  cache_.Take(large);
  EXPECT_EQ(cache_.AtLeast(MiB(2)), std::vector<Buffer*>{older});
}

// It remembers what sizes it has had, but not for ever.
TEST_F(RangeCacheTest, FindsRangesOfManySizes) {
  constexpr int kSizes = 10000;
  for (int round = 0; round < 2; ++round) {
    for (int i = 1; i <= kSizes; ++i) {
      Buffer* range = Range(MiB(i));
      cache_.Put(range);
      ASSERT_EQ(cache_.TakeFit(MiB(i)), range);
      ASSERT_EQ(cache_.TakeFit(MiB(i)), nullptr);
    }
  }
  EXPECT_EQ(cache_.bytes(), Bytes());
}

}  // namespace
}  // namespace mets::client
