#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

TEST(DenialTest, MoreThanThePoolNamesBothSizesAndAdvises) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("bert");
  cluster.Alloc(a, MiB(100));
  cluster.Pump();
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_TRUE(a.denials[0].impossible);
  EXPECT_EQ(a.denials[0].reason,
            "100 MiB on host0 for job 'bert' is more than the whole pool of "
            "64 MiB.\nAdvice: make the tensor or the batch smaller, or start "
            "metsd with a larger pool (--device)");
}

TEST(DenialTest, HoldersAreSortedBySizeAndCounted) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), Bytes()));
  for (int i = 1; i <= 18; ++i) {
    cluster.Alloc(cluster.Open(absl::StrCat("job", i)), KiB(64) * i);
  }
  FakeSession& asker = cluster.Open("asker");
  cluster.Pump();
  cluster.Alloc(asker, MiB(60), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(asker.denials.size(), 1u);
  const std::vector<std::string>& holders = asker.denials[0].holders;
  ASSERT_EQ(holders.size(), 17u);
  EXPECT_THAT(holders[0], HasSubstr("job 'job18'"));
  EXPECT_EQ(holders[16], "and 2 more jobs");
}

TEST(DenialTest, AGuaranteeInTheWayIsNamed) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  FakeSession& a = cluster.Open("a", {1, {}, MiB(48)});
  FakeSession& b = cluster.Open("b");
  const BufferId held = cluster.Alloc(a, MiB(48));
  cluster.Pump();
  for (int i = 0; i < 15; ++i) {
    cluster.Touch(a, held, true);
    cluster.Report(a);
    if (i == 0) cluster.Alloc(b, MiB(32), absl::Seconds(1));
    cluster.Advance(absl::Milliseconds(100));
  }
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_THAT(b.denials[0].reason, HasSubstr("guaranteed to active jobs"));
}

TEST(DenialTest, AGuaranteeOfWhoHasNothingIsNotInTheWay) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  cluster.Open("guaranteed", {1, {}, MiB(8)});
  FakeSession& stopped = cluster.Open("stopped");
  FakeSession& b = cluster.Open("b");
  cluster.Alloc(stopped, MiB(48));
  cluster.Pump();
  cluster.Report(stopped);
  cluster.Pump();
  cluster.Lose(stopped);
  cluster.Alloc(b, MiB(32), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_THAT(b.denials[0].reason,
              HasSubstr("jobs that hold memory do not answer"));
}

TEST(DenialTest, AJobAtItsLimitIsToldSo) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), Bytes()));
  FakeSession& a = cluster.Open("a", {1, MiB(32)});
  cluster.Alloc(a, MiB(24));
  cluster.Pump();
  cluster.Report(a);
  cluster.Alloc(a, MiB(24), absl::Seconds(1));
  cluster.Advance(absl::Seconds(2));
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_FALSE(a.denials[0].impossible);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("at its limit of 32 MiB"));
  EXPECT_THAT(a.denials[0].advice, HasSubstr("metsctl limit a SIZE"));
}

}  // namespace
}  // namespace mets::core
