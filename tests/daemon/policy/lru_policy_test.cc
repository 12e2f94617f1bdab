#include "daemon/policy/lru_policy.h"

#include <gtest/gtest.h>

namespace mets::policy {
namespace {

core::VictimFacts Used(int seconds_ago) {
  core::VictimFacts facts;
  facts.size = MiB(1);
  facts.last_use = absl::UnixEpoch() - absl::Seconds(seconds_ago);
  return facts;
}

TEST(LruPolicyTest, OldestUseScoresHighest) {
  const LruPolicy lru;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_GT(lru.Score(now, Used(9)), lru.Score(now, Used(5)));
  EXPECT_GT(lru.Key(Used(9)), lru.Key(Used(5)));
}

}  // namespace
}  // namespace mets::policy
