#include "daemon/policy/lru_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::policy {
namespace {

using core::VictimCandidate;

VictimCandidate Make(uint64_t buffer, int age, Bytes size, bool clean) {
  VictimCandidate candidate;
  candidate.session = SessionId(1);
  candidate.buffer = BufferId(buffer);
  candidate.size = size;
  candidate.last_use = absl::UnixEpoch() - absl::Seconds(age);
  candidate.clean = clean;
  return candidate;
}

std::vector<uint64_t> Ranked(std::vector<VictimCandidate> candidates) {
  LruPolicy().Rank(absl::UnixEpoch(), &candidates);
  std::vector<uint64_t> ids;
  for (const VictimCandidate& c : candidates) ids.push_back(c.buffer.value());
  return ids;
}

TEST(LruPolicyTest, OldestUseStandsFirst) {
  EXPECT_THAT(Ranked({Make(1, 1, MiB(1), false), Make(2, 9, MiB(1), false),
                      Make(3, 5, MiB(1), true)}),
              testing::ElementsAre(2, 3, 1));
}

TEST(LruPolicyTest, TiesGoToTheCleanThenTheLargeThenById) {
  EXPECT_THAT(Ranked({Make(4, 1, MiB(1), false), Make(3, 1, MiB(1), false),
                      Make(2, 1, MiB(8), false), Make(1, 1, MiB(1), true)}),
              testing::ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace mets::policy
