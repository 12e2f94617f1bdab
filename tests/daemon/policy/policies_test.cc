#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/policy/registry.h"

namespace mets::policy {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);
const absl::Time kNow = absl::UnixEpoch() + absl::Hours(9);

// A dirty buffer with a bus of 1 MiB a second.
core::VictimFacts Facts(Bytes size, double used_ago, double used_in) {
  core::VictimFacts facts;
  facts.size = size;
  facts.last_use = kNow - used_ago * kSecond;
  facts.next_use = kNow + used_in * kSecond;
  facts.copy_time = 2.0 * static_cast<double>(size / MiB(1)) * kSecond;
  return facts;
}

core::VictimFacts Clean(core::VictimFacts facts) {
  facts.clean = true;
  facts.copy_time /= 2;
  return facts;
}

core::VictimFacts Unknown(core::VictimFacts facts) {
  facts.next_use = absl::InfiniteFuture();
  return facts;
}

double Score(const char* policy, const core::VictimFacts& facts) {
  return (*MakePolicy(policy))->Score(kNow, facts);
}

TEST(PoliciesTest, LargestFirstScoresBytes) {
  EXPECT_GT(Score("largest_first", Facts(MiB(2), 1, 1)),
            Score("largest_first", Facts(MiB(1), 9, 9)));
}

TEST(PoliciesTest, NextUseScoresBytesTimesTimePerCopyTime) {
  EXPECT_DOUBLE_EQ(Score("next_use", Facts(MiB(4), 1, 8)), (4 << 20) * 8.0 / 8);
  EXPECT_DOUBLE_EQ(Score("next_use", Clean(Facts(MiB(4), 1, 8))),
                   (4 << 20) * 8.0 / 4);
}

TEST(PoliciesTest, NextUseExpectsAnUnknownUseAfterAsLongARest) {
  EXPECT_DOUBLE_EQ(Score("next_use", Unknown(Facts(MiB(1), 3, 0))),
                   Score("next_use", Facts(MiB(1), 0, 3)));
}

TEST(PoliciesTest, AbsenceIsWhatIsLeftBesidesTheCopies) {
  EXPECT_DOUBLE_EQ(Score("absence", Facts(MiB(2), 3, 7)), 3 + 7 - 4);
  EXPECT_DOUBLE_EQ(Score("absence", Clean(Facts(MiB(2), 3, 7))), 3 + 7 - 2);
  EXPECT_DOUBLE_EQ(Score("absence", Unknown(Facts(MiB(2), 3, 0))), 3 + 3 - 4);
}

TEST(PoliciesTest, AbsenceAreaCountsBytes) {
  EXPECT_DOUBLE_EQ(Score("absence_area", Facts(MiB(2), 3, 7)), 6.0 * (2 << 20));
}

TEST(PoliciesTest, WeightedAbsenceAreaIsTheExcessWhereItIsKnown) {
  core::VictimFacts facts = Facts(MiB(2), 3, 7);
  EXPECT_DOUBLE_EQ(Score("weighted_absence_area", facts), 6.0 * (2 << 20));
  facts.excess_area = 123;
  EXPECT_DOUBLE_EQ(Score("weighted_absence_area", facts), 123);
}

TEST(PoliciesTest, AbsenceVoteGrowsWithEachOfTheThree) {
  const core::VictimFacts facts = Facts(MiB(2), 3, 7);
  core::VictimFacts longer = facts, larger = facts, heavier = facts;
  longer.next_use += kSecond;
  larger.size += MiB(1);
  heavier.excess_area = 1e9;
  for (const core::VictimFacts& more : {longer, larger, heavier}) {
    EXPECT_GT(Score("absence_vote", more), Score("absence_vote", facts));
  }
  EXPECT_LT(Score("absence_vote", Facts(MiB(2), 1, 1)), 0);
}

TEST(PoliciesTest, BeladyIsAReferenceAndNotOffered) {
  const auto belady = MakeReferencePolicy();
  EXPECT_EQ(belady->name(), "belady");
  EXPECT_THAT(PolicyNames(), testing::Not(testing::Contains("belady")));
  EXPECT_GT(belady->Score(kNow, Facts(MiB(1), 1, 9)),
            belady->Score(kNow, Facts(MiB(8), 1, 8)));
  EXPECT_GT(belady->Score(kNow, Unknown(Facts(MiB(1), 1, 1))),
            belady->Score(kNow, Facts(MiB(1), 1, 1000)));
}

// What the core's index relies on.
TEST(PoliciesTest, KeysOrderLikeScoresWhereSizesAreEqual) {
  std::vector<std::unique_ptr<core::VictimPolicy>> policies;
  for (const std::string& name : PolicyNames()) {
    policies.push_back(*MakePolicy(name));
  }
  policies.push_back(MakeReferencePolicy());
  for (const auto& policy : policies) {
    SCOPED_TRACE(policy->name());
    for (bool known : {true, false}) {
      std::vector<core::VictimFacts> all;
      for (int i = 0; i < 50; ++i) {
        all.push_back(Facts(MiB(2), (i * 7) % 11, (i * 5) % 13));
        if (!known) all.back() = Unknown(all.back());
      }
      for (const core::VictimFacts& a : all) {
        for (const core::VictimFacts& b : all) {
          if (policy->Key(a) <= policy->Key(b)) continue;
          for (absl::Time now : {kNow, kNow + absl::Minutes(1)}) {
            EXPECT_GE(policy->Score(now, a), policy->Score(now, b));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mets::policy
