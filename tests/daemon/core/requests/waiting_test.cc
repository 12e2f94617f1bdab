#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

// A device of 64 MiB without swap space: nothing can be evicted.
class WaitingTest : public ::testing::Test {
 protected:
  // The session has all memory, and uses none of it.
  void CacheAll(FakeSession& session) {
    const BufferId buffer = cluster_.Alloc(session, MiB(64));
    cluster_.Pump();
    cluster_.Free(session, buffer, /*cache=*/true);
    cluster_.Report(session);
    cluster_.Pump();
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(64), Bytes())};
};

TEST_F(WaitingTest, OlderRequestsAreServedFirstAndNobodySteals) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  const BufferId held = cluster_.Alloc(a, MiB(48));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(32));
  cluster_.Pump();
  cluster_.Alloc(c, MiB(8));  // Would fit now.
  cluster_.Pump();
  EXPECT_TRUE(b.buffers.empty());
  EXPECT_TRUE(c.buffers.empty());
  cluster_.Free(a, held, false);
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(c.buffers.size(), 1u);
}

TEST_F(WaitingTest, HigherPriorityGoesFirst) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c", {1, {}, {}, 5});
  const BufferId held = cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(c, MiB(64));
  cluster_.Pump();
  cluster_.Free(a, held, false);
  cluster_.Pump();
  EXPECT_TRUE(b.buffers.empty());
  EXPECT_EQ(c.buffers.size(), 1u);
}

TEST_F(WaitingTest, AJobBlockedByItsOwnLimitBlocksNobodyElse) {
  FakeSession& a = cluster_.Open("a", {1, MiB(16)});
  FakeSession& b = cluster_.Open("b");
  cluster_.AllocPinned(a, MiB(16));
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").waiting, 1);
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(cluster_.job("a").waiting, 1);
}

TEST_F(WaitingTest, ARequestWithoutWaitIsDeniedAtOnceWhenMemoryIsInUse) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(60));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(16), absl::ZeroDuration());
  cluster_.Pump();
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_FALSE(b.denials[0].impossible);
  EXPECT_THAT(b.denials[0].reason, HasSubstr("without waiting"));
}

TEST_F(WaitingTest, ARequestWithoutWaitGetsCachedMemory) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  CacheAll(a);
  EXPECT_EQ(cluster_.device().cached, MiB(64));
  cluster_.Alloc(b, MiB(16), absl::ZeroDuration());
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(a.trims, 1);
}

// It has looked there. To give it back, it would have to wait for its device.
TEST_F(WaitingTest, ARequestWithoutWaitGetsNothingThatItsProcessCaches) {
  FakeSession& a = cluster_.Open("a");
  CacheAll(a);
  cluster_.Alloc(a, MiB(16), absl::ZeroDuration());
  cluster_.Pump();
  EXPECT_EQ(a.denials.size(), 1u);
  EXPECT_EQ(a.trims, 0);
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
  EXPECT_EQ(a.trims, 1);
}

TEST_F(WaitingTest, ADeadlinePassesWithATextThatNamesTheHolders) {
  FakeSession& a = cluster_.Open("bert");
  FakeSession& b = cluster_.Open("gpt");
  cluster_.AllocPinned(a, MiB(60));
  cluster_.Alloc(b, MiB(16), absl::Seconds(3));
  cluster_.Advance(absl::Milliseconds(2999));
  EXPECT_TRUE(b.denials.empty());
  cluster_.Advance(absl::Milliseconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  const std::string& reason = b.denials[0].reason;
  EXPECT_THAT(reason, HasSubstr("16 MiB on host0 for job 'gpt'"));
  EXPECT_THAT(reason, HasSubstr("within 3 s"));
  EXPECT_THAT(reason, HasSubstr("job 'bert': 60 MiB resident, 0 B swapped, "
                                "60 MiB pinned"));
  EXPECT_THAT(reason, HasSubstr("pinned, held or fixed"));
  EXPECT_THAT(b.denials[0].advice, HasSubstr("METS_WAIT"));
  const JobStatus job = cluster_.job("gpt");
  EXPECT_EQ(job.waits_total, 1);
  EXPECT_EQ(job.wait_total, absl::Seconds(3));
  EXPECT_EQ(job.waiting, 0);
}

// Waiting would not help.
TEST_F(WaitingTest, WhoStandsInItsOwnWayIsNotToldToWait) {
  FakeSession& a = cluster_.Open("bert");
  cluster_.AllocPinned(a, MiB(60));
  cluster_.Alloc(a, MiB(16), absl::Seconds(3));
  cluster_.Advance(absl::Seconds(4));
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_THAT(a.denials[0].reason, HasSubstr("all of it the job's own"));
  EXPECT_THAT(a.denials[0].advice, testing::Not(HasSubstr("METS_WAIT")));
}

TEST_F(WaitingTest, AForeverRequestWaitsUntilItIsServed) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId buffer = cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(16), absl::InfiniteDuration());
  cluster_.Advance(absl::Minutes(5));
  EXPECT_EQ(cluster_.job("b").waiting, 1);
  cluster_.Free(a, buffer, false);
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(WaitingTest, ADeviceIsTightWhileMemoryIsShortAndTwoSecondsAfter) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId buffer = cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  EXPECT_FALSE(a.tight);
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  EXPECT_TRUE(a.tight);
  EXPECT_TRUE(b.tight);
  cluster_.Advance(absl::Seconds(3));
  EXPECT_TRUE(a.tight);
  cluster_.Free(a, buffer, false);
  cluster_.Advance(absl::Milliseconds(1900));
  EXPECT_TRUE(a.tight);
  cluster_.Advance(absl::Milliseconds(200));
  EXPECT_FALSE(a.tight);
  EXPECT_FALSE(b.tight);
}

// --- the overdraft token ---------------------------------------------------

TEST_F(WaitingTest, OneSessionHasTheOverdraftToken) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, Bytes(), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
  cluster_.Alloc(b, MiB(4), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 0);
  EXPECT_TRUE(b.buffers.empty());
  cluster_.GiveOverdraftBack(a);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 1);
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(WaitingTest, TheTokensHolderGetsItAgainAndGivesItBackAsOften) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, Bytes(), absl::Seconds(60), true);
  cluster_.Alloc(a, MiB(1), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 2);
  cluster_.Alloc(b, Bytes(), absl::Seconds(60), true);
  cluster_.GiveOverdraftBack(a);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 0);
  cluster_.GiveOverdraftBack(a);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 1);
}

TEST_F(WaitingTest, OfTwoOpsOfOneSessionOneHasTheToken) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(1), absl::Seconds(60), true, false, 1);
  cluster_.Alloc(a, MiB(1), absl::Seconds(60), true, false, 2);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
  EXPECT_EQ(a.buffers.size(), 1u);
  cluster_.GiveOverdraftBack(a);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
  EXPECT_EQ(a.buffers.size(), 2u);
}

TEST_F(WaitingTest, TheTokensHolderIsServedBeforeOlderRequests) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(a, Bytes(), absl::Seconds(60), true);
  const BufferId held = cluster_.Alloc(c, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Free(c, held, false);
  cluster_.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
  EXPECT_TRUE(b.buffers.empty());
}

TEST_F(WaitingTest, ARequestThatPinsNothingLetsAPinnedOneGoFirst) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  const BufferId pinned = cluster_.AllocPinned(c, MiB(40));
  cluster_.Alloc(a, MiB(60), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_TRUE(a.buffers.empty());
  cluster_.Alloc(b, MiB(30), absl::Seconds(60), true, true);
  cluster_.Advance(absl::Milliseconds(200));
  cluster_.Free(c, pinned, false);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 1);
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(WaitingTest, APinnedOneDoesNotTakeTheTokenFromARequestAtOnce) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  const BufferId pinned = cluster_.AllocPinned(c, MiB(40));
  cluster_.Alloc(a, MiB(60), absl::Seconds(60), true);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(30), absl::Seconds(60), true, true);
  cluster_.Advance(absl::Milliseconds(50));
  cluster_.Free(c, pinned, false);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
  EXPECT_EQ(a.buffers.size(), 1u);
}

TEST_F(WaitingTest, WhileTheTokensHolderWaitsAPinnedRequestGetsWhatIsFree) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(a, MiB(4), absl::Seconds(60), true);
  const BufferId pinned = cluster_.Alloc(c, MiB(40));
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
  cluster_.Pin(c, pinned, true);
  cluster_.Report(c);
  cluster_.Alloc(a, MiB(30), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
  cluster_.Alloc(c, MiB(8), absl::Seconds(60), true, true);
  cluster_.Advance(absl::Milliseconds(200));
  EXPECT_EQ(c.buffers.size(), 2u);
  EXPECT_EQ(c.overdraft, 0);
}

TEST_F(WaitingTest, AWaiterForTheTokenIsToldSoAtItsDeadline) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, Bytes(), absl::Seconds(60), true);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(4), absl::Seconds(1), true);
  cluster_.Advance(absl::Seconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_THAT(b.denials[0].reason, HasSubstr("overdraft token"));
}

TEST_F(WaitingTest, ADeniedRequestGivesTheTokenBack) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(4), absl::Seconds(1), true);
  cluster_.Advance(absl::Seconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  cluster_.Alloc(a, Bytes(), absl::Seconds(1), true);
  cluster_.Pump();
  EXPECT_EQ(a.overdraft, 1);
}

TEST_F(WaitingTest, TheTokenIsFreeWhenItsHolderEndsOrIsLost) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  cluster_.Alloc(a, Bytes(), absl::Seconds(60), true);
  cluster_.Pump();
  cluster_.Alloc(b, Bytes(), absl::Seconds(60), true);
  cluster_.Pump();
  cluster_.Kill(a);
  cluster_.Pump();
  EXPECT_EQ(b.overdraft, 1);
  cluster_.Alloc(c, Bytes(), absl::Seconds(60), true);
  cluster_.Pump();
  EXPECT_EQ(c.overdraft, 0);
  cluster_.Lose(b);
  cluster_.Pump();
  EXPECT_EQ(c.overdraft, 1);
}

}  // namespace
}  // namespace mets::core
