#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

class SessionLifeTest : public ::testing::Test {
 protected:
  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(256))};
};

TEST_F(SessionLifeTest, AnEndedSessionsMemoryGoesToTheWaiters) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.AllocPinned(a, MiB(64));
  cluster_.Alloc(b, MiB(64));
  cluster_.Pump();
  EXPECT_TRUE(b.buffers.empty());
  cluster_.Kill(a);
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
}

TEST_F(SessionLifeTest, AnEndedSessionsSwapSpaceIsFree) {
  FakeSession& a = cluster_.Open("a");
  for (int i = 0; i < 10; ++i) {
    cluster_.Alloc(a, MiB(16));
    cluster_.Pump();
    cluster_.Report(a);
  }
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().swap_used, MiB(96));
  cluster_.Kill(a);
  EXPECT_EQ(cluster_.device().swap_used, Bytes());
  EXPECT_EQ(cluster_.device().free, MiB(64));
}

TEST_F(SessionLifeTest, StopSaysByeToEveryConnectedSession) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Lose(b);
  const auto actions = cluster_.core().Step(cluster_.now(), Stop());
  ASSERT_EQ(actions.size(), 1u);
  const auto& bye = std::get<SendBye>(std::get<SessionAction>(actions[0]));
  EXPECT_EQ(bye.session, a.id);
  EXPECT_TRUE(bye.restarting);
}

TEST_F(SessionLifeTest, ALostSessionKeepsWhatItHolds) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(48));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Lose(a);
  cluster_.Alloc(b, MiB(32), absl::Seconds(1));
  cluster_.Advance(absl::Seconds(2));
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_THAT(b.denials[0].reason,
              testing::HasSubstr("jobs that hold memory do not answer"));
  cluster_.Resume(a);
  cluster_.Pump();
  cluster_.Alloc(b, MiB(32));
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(a.evicted, 1);
}

TEST_F(SessionLifeTest, AGrantLostOnTheWayIsFreeAfterTheSnapshot) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(16));
  a.silent = true;
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().resident, MiB(16));
  cluster_.Lose(a);
  a.silent = false;
  cluster_.Resume(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().resident, Bytes());
  EXPECT_EQ(cluster_.device().free, MiB(64));
  // Its descriptor did not arrive either: it is sent again.
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
}

TEST_F(SessionLifeTest, SwappedBytesSurviveALostStream) {
  FakeSession& a = cluster_.Open("a");
  std::vector<BufferId> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(cluster_.Alloc(a, MiB(16)));
    cluster_.Pump();
    cluster_.Report(a);
  }
  cluster_.Pump();
  cluster_.Lose(a);
  cluster_.Resume(a);
  cluster_.Pump();
  EXPECT_EQ(cluster_.device().swap_used, MiB(64));
  for (BufferId id : ids) {
    cluster_.Touch(a, id, false);
    cluster_.Pump();
    EXPECT_TRUE(a.buffers[id].resident);
    cluster_.Report(a);
  }
}

TEST_F(SessionLifeTest, AnOrderThatALostSessionFollowedIsSettledBySnapshot) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId id = cluster_.Alloc(a, MiB(64));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Alloc(b, MiB(16));
  cluster_.DeliverToCore(a);
  cluster_.DeliverToCore(b);
  while (cluster_.DeliverMemory()) {
  }
  while (cluster_.DeliverToSession(a)) {
  }
  ASSERT_FALSE(a.buffers[id].resident);
  cluster_.Lose(a);  // Neither Release nor OrderDone arrives.
  cluster_.Pump();
  EXPECT_TRUE(b.buffers.empty());
  cluster_.Resume(a);
  cluster_.Pump();
  EXPECT_EQ(b.buffers.size(), 1u);
  EXPECT_EQ(cluster_.device().swap_used, MiB(64));
  cluster_.Touch(a, id, false);
  cluster_.Report(b);
  cluster_.Advance(absl::Seconds(1));
  EXPECT_TRUE(a.buffers[id].resident);
}

TEST_F(SessionLifeTest, RequestsOfALostSessionCanBeAskedAgain) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId held = cluster_.Alloc(b, MiB(64));
  cluster_.Pump();
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(cluster_.job("a").waiting, 1);
  cluster_.Lose(a);
  EXPECT_EQ(cluster_.job("a").waiting, 0);
  cluster_.Resume(a);
  cluster_.Free(b, held, false);
  a.last_request = 0;  // The same ids again.
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  EXPECT_EQ(a.buffers.size(), 1u);
}

}  // namespace
}  // namespace mets::core
