#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

class JobTest : public ::testing::Test {
 protected:
  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(256))};
};

TEST_F(JobTest, ABadNameIsRefusedWithTheReason) {
  FakeSession& a = cluster_.Open("no spaces allowed");
  EXPECT_TRUE(a.refused);
  EXPECT_THAT(a.refusal, HasSubstr("no spaces allowed"));
  EXPECT_TRUE(cluster_.core().GetStatus().sessions.empty());
}

TEST_F(JobTest, AGuaranteeAboveTheLimitIsRefused) {
  FakeSession& a = cluster_.Open("a", {1, MiB(16), MiB(32)});
  EXPECT_TRUE(a.refused);
  EXPECT_THAT(a.refusal, HasSubstr("32 MiB"));
  EXPECT_THAT(a.refusal, HasSubstr("16 MiB"));
}

TEST_F(JobTest, GuaranteesThatDoNotFitNameTheHolders) {
  cluster_.Open("first", {1, {}, MiB(40)});
  FakeSession& b = cluster_.Open("second", {1, {}, MiB(40)});
  ASSERT_EQ(b.ready.size(), 1u);
  EXPECT_THAT(b.ready[0].error, HasSubstr("job 'second'"));
  EXPECT_THAT(b.ready[0].error, HasSubstr("job 'first': 40 MiB"));
  FakeSession& c = cluster_.Open("third", {1, {}, MiB(24)});
  EXPECT_EQ(c.ready[0].error, "");
}

TEST_F(JobTest, AGuaranteeIsFreeOnceItsJobHasEnded) {
  FakeSession& a = cluster_.Open("first", {1, {}, MiB(40)});
  cluster_.Alloc(a, MiB(1));
  cluster_.Pump();
  cluster_.Report(a);
  EXPECT_EQ(cluster_.job("first").guarantee, MiB(40));
  cluster_.Kill(a);
  EXPECT_EQ(cluster_.job("first").guarantee, Bytes());
  FakeSession& b = cluster_.Open("second", {1, {}, MiB(40)});
  EXPECT_EQ(b.ready[0].error, "");
}

TEST_F(JobTest, MoreThanTheLimitIsImpossibleAndSaysHowToRaiseIt) {
  FakeSession& a = cluster_.Open("a", {1, MiB(16)});
  cluster_.Alloc(a, MiB(17));
  cluster_.Pump();
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_TRUE(a.denials[0].impossible);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("limit of 16 MiB"));
  EXPECT_THAT(a.denials[0].reason, HasSubstr("metsctl limit a SIZE"));
  EXPECT_THAT(a.denials[0].reason, HasSubstr("METS_LIMIT"));
}

TEST_F(JobTest, AJobAtItsLimitGivesUpItsOwnMemoryFirst) {
  FakeSession& a = cluster_.Open("a", {1, MiB(24)});
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(b, MiB(8));
  for (int i = 0; i < 5; ++i) {
    cluster_.Advance(absl::Milliseconds(10));
    cluster_.Alloc(a, MiB(8));
    cluster_.Pump();
    cluster_.Report(a);
    cluster_.Pump();
    EXPECT_LE(cluster_.job("a").resident, MiB(24));
  }
  EXPECT_EQ(a.buffers.size(), 5u);
  EXPECT_EQ(a.evicted, 2);
  EXPECT_EQ(b.evicted, 0);
  EXPECT_TRUE(a.tight);
  EXPECT_FALSE(b.tight);
}

TEST_F(JobTest, SessionsOfAJobShareItsLimit) {
  FakeSession& a = cluster_.Open("a", {1, MiB(24)});
  FakeSession& b = cluster_.Open("a");
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Alloc(b, MiB(16));
  cluster_.Advance(absl::Milliseconds(50));
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(a.evicted, 1);
  EXPECT_EQ(cluster_.job("a").sessions, 2);
}

TEST_F(JobTest, TheStricterLimitOfAJobsSessionsHolds) {
  FakeSession& a = cluster_.Open("a", {1, MiB(32)});
  cluster_.Open("a", {1, MiB(16)});
  EXPECT_EQ(cluster_.job("a").limit, MiB(16));
  EXPECT_EQ(a.limit, MiB(16));
  cluster_.Open("a", {1, MiB(48)});
  EXPECT_EQ(cluster_.job("a").limit, MiB(16));
}

TEST_F(JobTest, TheSameNameInAnotherDomainIsAnotherJob) {
  cluster_.Open("a", {1, MiB(16)});
  FakeSession& b = cluster_.Open("a", {2});
  cluster_.Alloc(b, MiB(32));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(JobTest, ALoweredLimitTakesMemoryBack) {
  FakeSession& a = cluster_.Open("a");
  for (int i = 0; i < 4; ++i) cluster_.Alloc(a, MiB(8));
  cluster_.Pump();
  const BufferId last = cluster_.Alloc(a, MiB(8));
  cluster_.Pump();
  cluster_.Free(a, last, /*cache=*/true);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Step(SetJobLimit{"a", MiB(16), 7});
  cluster_.Advance(absl::Seconds(1));
  ASSERT_EQ(cluster_.limits.size(), 1u);
  EXPECT_EQ(cluster_.limits[0].call, 7u);
  EXPECT_TRUE(cluster_.limits[0].status.ok());
  EXPECT_EQ(a.limit, MiB(16));
  EXPECT_EQ(a.held(), MiB(16));
  EXPECT_EQ(a.evicted, 2);
  EXPECT_EQ(a.trims, 1);
}

TEST_F(JobTest, ALimitForAnUnknownJobNamesTheKnownOnes) {
  cluster_.Open("alpha");
  cluster_.Step(SetJobLimit{"beta", MiB(16), 1});
  ASSERT_EQ(cluster_.limits.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(cluster_.limits[0].status));
  EXPECT_THAT(std::string(cluster_.limits[0].status.message()),
              HasSubstr("alpha"));
}

TEST_F(JobTest, ALimitBelowTheGuaranteeIsRefused) {
  cluster_.Open("a", {1, {}, MiB(32)});
  cluster_.Step(SetJobLimit{"a", MiB(16), 1});
  EXPECT_TRUE(absl::IsInvalidArgument(cluster_.limits[0].status));
}

TEST_F(JobTest, TotalsOutliveTheLastSessionForAMinute) {
  FakeSession& a = cluster_.Open("a");
  BufferChanges changes;
  changes.session = a.id;
  changes.device = "host0";
  changes.totals.evicted = MiB(5);
  changes.totals.evictions = 3;
  cluster_.Send(a, changes);
  cluster_.Pump();
  cluster_.Kill(a);
  EXPECT_EQ(cluster_.job("a").totals.evicted, MiB(5));
  EXPECT_EQ(cluster_.job("a").sessions, 0);
  cluster_.Advance(absl::Seconds(30));
  FakeSession& b = cluster_.Open("a");
  changes.session = b.id;
  cluster_.Send(b, changes);
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").totals.evicted, MiB(10));
  cluster_.Kill(b);
  cluster_.Advance(absl::Seconds(61));
  EXPECT_EQ(cluster_.job("a").name, "");
}

}  // namespace
}  // namespace mets::core
