#include "daemon/core/overdraft.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

const SessionId kA(1), kB(2);

TEST(OverdraftTest, IsHeldByOneSessionAsOftenAsItTookIt) {
  Overdraft token;
  EXPECT_TRUE(token.TryTake(kA));
  EXPECT_TRUE(token.TryTake(kA));
  EXPECT_FALSE(token.TryTake(kB));
  token.GiveBack(kA);
  EXPECT_EQ(token.holder(), kA);
  token.GiveBack(kB);
  EXPECT_EQ(token.holder(), kA);
  token.GiveBack(kA);
  EXPECT_FALSE(token.holder().ok());
  token.GiveBack(kA);
  EXPECT_TRUE(token.TryTake(kB));
}

TEST(OverdraftTest, DropGivesAllBack) {
  Overdraft token;
  token.TryTake(kA);
  token.TryTake(kA);
  token.Drop(kB);
  EXPECT_EQ(token.holder(), kA);
  token.Drop(kA);
  EXPECT_TRUE(token.TryTake(kB));
}

}  // namespace
}  // namespace mets::core
