#include "daemon/core/requests/overdraft.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

const OpOfSession kA = {SessionId(1), 1}, kAnotherOfA = {SessionId(1), 2},
                  kB = {SessionId(2), 1};

TEST(OverdraftTest, IsHeldByOneOpAsOftenAsItTookIt) {
  Overdraft token;
  EXPECT_TRUE(token.TryTake(kA));
  EXPECT_TRUE(token.TryTake(kA));
  EXPECT_FALSE(token.TryTake(kAnotherOfA));
  EXPECT_FALSE(token.TryTake(kB));
  token.GiveBack(kA.session);
  EXPECT_EQ(token.holder(), kA);
  token.GiveBack(kB.session);
  EXPECT_EQ(token.holder(), kA);
  token.GiveBack(kA.session);
  EXPECT_FALSE(token.held());
  token.GiveBack(kA.session);
  EXPECT_TRUE(token.TryTake(kB));
}

TEST(OverdraftTest, DropGivesAllBack) {
  Overdraft token;
  token.TryTake(kA);
  token.TryTake(kA);
  token.Drop(kB.session);
  EXPECT_EQ(token.holder(), kA);
  token.Drop(kA.session);
  EXPECT_TRUE(token.TryTake(kB));
}

}  // namespace
}  // namespace mets::core
