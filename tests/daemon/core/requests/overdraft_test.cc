#include "daemon/core/requests/overdraft.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

const OpOfSession kOpOfA = {SessionId(1), 1}, kOtherOpOfA = {SessionId(1), 2},
                  kOpOfB = {SessionId(2), 1};

TEST(OverdraftTest, IsHeldByOneOpAsOftenAsItTookIt) {
  Overdraft token;
  EXPECT_TRUE(token.TryTake(kOpOfA));
  EXPECT_TRUE(token.TryTake(kOpOfA));
  EXPECT_FALSE(token.TryTake(kOtherOpOfA));
  EXPECT_FALSE(token.TryTake(kOpOfB));
  token.GiveBack(kOpOfA.session);
  EXPECT_EQ(token.holder(), kOpOfA);
  token.GiveBack(kOpOfB.session);
  EXPECT_EQ(token.holder(), kOpOfA);
  token.GiveBack(kOpOfA.session);
  EXPECT_FALSE(token.held());
  token.GiveBack(kOpOfA.session);
  EXPECT_TRUE(token.TryTake(kOpOfB));
}

TEST(OverdraftTest, DropGivesAllBack) {
  Overdraft token;
  token.TryTake(kOpOfA);
  token.TryTake(kOpOfA);
  token.Drop(kOpOfB.session);
  EXPECT_EQ(token.holder(), kOpOfA);
  token.Drop(kOpOfA.session);
  EXPECT_TRUE(token.TryTake(kOpOfB));
}

}  // namespace
}  // namespace mets::core
