#include "daemon/core/swap/extent_space.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

TEST(ExtentSpaceTest, TakesWhatFitsWithoutOverlap) {
  ExtentSpace space(MiB(8));
  EXPECT_EQ(space.TakeWhole(MiB(2)), Bytes());
  EXPECT_EQ(space.TakeWhole(MiB(2)), MiB(2));
  space.Give(Bytes(), MiB(2));
  EXPECT_EQ(space.TakeWhole(MiB(3)), MiB(4));
  EXPECT_EQ(space.TakeWhole(MiB(2)), Bytes());
  EXPECT_EQ(space.TakeWhole(MiB(1)), MiB(7));
  EXPECT_TRUE(space.free().is_zero());
  EXPECT_FALSE(space.TakeWhole(KiB(64)).has_value());
}

TEST(ExtentSpaceTest, WhatIsSetAsideJoinsItsNeighboursWhenMoreIsWanted) {
  ExtentSpace space(MiB(8));
  EXPECT_EQ(space.TakeWhole(MiB(4)), Bytes());
  space.Give(Bytes(), MiB(4));
  EXPECT_EQ(space.TakeWhole(MiB(8)), Bytes());
}

TEST(ExtentSpaceTest, NeighboursCoalesce) {
  ExtentSpace space(MiB(3));
  for (int i = 0; i < 3; ++i) space.TakeWhole(MiB(1));
  EXPECT_FALSE(space.TakeWhole(KiB(64)).has_value());
  space.Give(Bytes(), MiB(1));
  space.Give(MiB(2), MiB(1));
  EXPECT_FALSE(space.TakeWhole(MiB(2)).has_value());
  space.Give(MiB(1), MiB(1));
  EXPECT_TRUE(space.empty());
  EXPECT_EQ(space.TakeWhole(MiB(3)), Bytes());
}

TEST(ExtentSpaceTest, WhatIsSetAsideServesWithItsNeighboursWhereNoneFits) {
  ExtentSpace space(MiB(512));
  space.TakeWhole(MiB(511));
  space.Give(MiB(510), MiB(1));
  space.Give(MiB(100), MiB(2));
  EXPECT_EQ(space.TakeWhole(MiB(2)), MiB(100));  // The last one stays aside.
  EXPECT_EQ(space.TakeWhole(MiB(2)), MiB(510));
  EXPECT_EQ(space.free(), Bytes());
}

TEST(ExtentSpaceTest, PartsComeFromTheFirstFreeRange) {
  ExtentSpace space(MiB(4));
  space.TakeWhole(MiB(4));
  space.Give(MiB(1), MiB(1));
  space.Give(MiB(3), MiB(1));
  const ExtentSpace::Part part = space.TakePart(MiB(2));
  EXPECT_EQ(part.offset, MiB(1));
  EXPECT_EQ(part.size, MiB(1));
}

TEST(ExtentSpaceTest, BytesAreTakenWhereTheyAreWanted) {
  ExtentSpace space(MiB(8));
  EXPECT_TRUE(space.TakeAt(MiB(2), MiB(1)));
  EXPECT_FALSE(space.TakeAt(MiB(2), MiB(1)));
  EXPECT_FALSE(space.TakeAt(MiB(1), MiB(2)));
  EXPECT_FALSE(space.TakeAt(MiB(7), MiB(2)));
  EXPECT_FALSE(space.TakeAt(MiB(9), MiB(1)));
  EXPECT_FALSE(space.TakeAt(MiB(4), Bytes()));
  EXPECT_TRUE(space.TakeAt(Bytes(), MiB(2)));
  EXPECT_TRUE(space.TakeAt(MiB(7), MiB(1)));
  EXPECT_EQ(space.free(), MiB(4));
  EXPECT_EQ(space.TakeWhole(MiB(4)), MiB(3));
  space.Give(Bytes(), MiB(8));
  EXPECT_TRUE(space.empty());
}

TEST(ExtentSpaceDeathTest, GivingTwiceIsABug) {
  ExtentSpace space(MiB(4));
  space.TakeWhole(MiB(4));
  space.Give(MiB(1), MiB(1));
  EXPECT_DEATH(space.Give(MiB(1), MiB(1)), "twice");
}

}  // namespace
}  // namespace mets::core
