#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/core/operating/caps.h"
#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class OperatingTest : public ::testing::Test {
 protected:
  FakeSession& OpenWith(const std::string& job, int mib,
                        const FakeCluster::Wish& wish = {}) {
    FakeSession& session = cluster_.Open(job, wish);
    for (int i = 0; i < mib; ++i) cluster_.Alloc(session, MiB(1));
    cluster_.Pump();
    cluster_.Report(session);
    cluster_.Pump();
    return session;
  }
  const CommandDone& last() { return cluster_.commands.back(); }

  FakeCluster cluster_{FakeCluster::Config(MiB(8), MiB(64))};
};

TEST_F(OperatingTest, ADrainedDeviceRefusesNewJobsAndSaysWhy) {
  FakeSession& old = OpenWith("old", 1);
  cluster_.Step(DrainDevice{"host0", true, 7});
  EXPECT_EQ(last().call, 7u);
  EXPECT_TRUE(last().status.ok());
  EXPECT_TRUE(cluster_.device().drained);
  FakeSession& late = cluster_.Open("late");
  ASSERT_EQ(late.ready.size(), 1u);
  EXPECT_THAT(late.ready[0].error, HasSubstr("being drained"));
  EXPECT_THAT(late.ready[0].error, HasSubstr("metsctl undrain host0"));
  cluster_.Alloc(old, MiB(2));
  cluster_.Pump();
  EXPECT_EQ(old.buffers.size(), 2u);
}

TEST_F(OperatingTest, ADrainedDeviceTakesMoreProcessesOfItsJobs) {
  OpenWith("old", 1);
  cluster_.Step(DrainDevice{"host0", true, 1});
  EXPECT_EQ(cluster_.Open("old").ready[0].error, "");
}

TEST_F(OperatingTest, AnUndrainedDeviceTakesJobsAgain) {
  cluster_.Step(DrainDevice{"host0", true, 1});
  cluster_.Step(DrainDevice{"host0", false, 2});
  EXPECT_EQ(cluster_.Open("late").ready[0].error, "");
}

TEST_F(OperatingTest, UnknownNamesAreAnsweredWithThoseThereAre) {
  OpenWith("alpha", 1);
  cluster_.Step(DrainDevice{"gpu9", true, 1});
  EXPECT_THAT(std::string(last().status.message()), HasSubstr("host0"));
  cluster_.Step(PauseJob{"beta", true, 2});
  EXPECT_THAT(std::string(last().status.message()), HasSubstr("alpha"));
  cluster_.Step(EvictJob{"beta", 3});
  EXPECT_TRUE(absl::IsNotFound(last().status));
  cluster_.Step(KillJob{"beta", absl::Seconds(1), 4});
  EXPECT_TRUE(absl::IsNotFound(last().status));
  EXPECT_TRUE(cluster_.ends.empty());
}

TEST_F(OperatingTest, APausedJobsGateStaysClosedUntilItIsResumed) {
  FakeSession& a = OpenWith("a", 1);
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Pump();
  EXPECT_FALSE(a.gate.open);
  EXPECT_TRUE(cluster_.job("a").paused);
  EXPECT_FALSE(cluster_.job("a").gate_open);
  cluster_.WaitAtGate(a);
  cluster_.Advance(absl::Seconds(100));
  EXPECT_FALSE(a.gate.open);
  cluster_.Step(PauseJob{"a", false, 2});
  cluster_.Pump();
  EXPECT_TRUE(a.gate.open);
  EXPECT_TRUE(cluster_.job("a").gate_open);
}

TEST_F(OperatingTest, AProcessThatJoinsAPausedJobWaits) {
  OpenWith("a", 1);
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Pump();
  FakeSession& second = cluster_.Open("a");
  cluster_.Pump();
  EXPECT_FALSE(second.gate.open);
  EXPECT_TRUE(second.ready_behind_gate);
}

TEST_F(OperatingTest, AStreamThatComesBackFindsItsJobPaused) {
  FakeSession& a = OpenWith("a", 1);
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Pump();
  cluster_.Lose(a);
  cluster_.Resume(a);
  cluster_.Pump();
  EXPECT_FALSE(a.gate.open);
}

TEST_F(OperatingTest, APausedJobsBuffersLeaveFirst) {
  FakeSession& a = OpenWith("a", 4);
  FakeSession& b = OpenWith("b", 4);
  for (auto& [id, buffer] : a.buffers) cluster_.Touch(a, id, true);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Pump();
  cluster_.Alloc(b, MiB(2));
  cluster_.Advance(absl::Milliseconds(50));
  EXPECT_EQ(b.evicted, 0);
  EXPECT_GE(a.evicted, 2);
}

// Of two jobs that do not fit together, the one that has the device.
TEST_F(OperatingTest, APausedJobGivesItsTurnToOthers) {
  FakeSession& a = OpenWith("a", 6);
  FakeSession& b = OpenWith("b", 6);
  for (FakeSession* s : {&a, &b}) {
    cluster_.Send(*s,
                  StepNeed{s->id, "host0", MiB(6), MiB(6), absl::Seconds(1)});
  }
  cluster_.Pump();
  ASSERT_NE(a.gate.open, b.gate.open);
  FakeSession& first = a.gate.open ? a : b;
  FakeSession& other = a.gate.open ? b : a;
  cluster_.WaitAtGate(other);
  cluster_.Step(PauseJob{first.job, true, 1});
  cluster_.Pump();
  EXPECT_FALSE(first.gate.open);
  EXPECT_TRUE(other.gate.open);
  cluster_.Advance(absl::Seconds(100));
  EXPECT_FALSE(first.gate.open);
}

TEST_F(OperatingTest, EvictBringsAJobIntoSwapSpaceOnce) {
  FakeSession& a = OpenWith("a", 4);
  FakeSession& b = OpenWith("b", 2);
  cluster_.Step(EvictJob{"a", 5});
  EXPECT_TRUE(cluster_.commands.empty());
  cluster_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(cluster_.commands.size(), 1u);
  EXPECT_EQ(last().call, 5u);
  EXPECT_TRUE(last().status.ok());
  EXPECT_EQ(last().evicted, MiB(4));
  EXPECT_EQ(last().left, Bytes());
  EXPECT_EQ(a.evicted, 4);
  EXPECT_EQ(b.evicted, 0);
  // What it needs, it has again.
  cluster_.Touch(a, a.buffers.begin()->first, false);
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(cluster_.job("a").resident, MiB(1));
}

TEST_F(OperatingTest, AGuaranteeDoesNotProtectFromTheOperator) {
  FakeSession& a = OpenWith("a", 4, {1, Bytes(), MiB(4)});
  cluster_.Step(EvictJob{"a", 5});
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(a.evicted, 4);
}

TEST_F(OperatingTest, EvictSaysWhatStays) {
  FakeSession& a = OpenWith("a", 4);
  cluster_.Pin(a, a.buffers.begin()->first, true);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Step(EvictJob{"a", 5});
  cluster_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(cluster_.commands.size(), 1u);
  EXPECT_EQ(last().evicted, MiB(3));
  EXPECT_EQ(last().left, MiB(1));
}

TEST_F(OperatingTest, EvictEndsAlsoWhereNobodyAnswers) {
  FakeSession& a = OpenWith("a", 4);
  a.silent = true;
  cluster_.Step(EvictJob{"a", 5});
  cluster_.Advance(absl::Seconds(10));
  ASSERT_EQ(cluster_.commands.size(), 1u);
  EXPECT_EQ(last().left, MiB(4));
}

TEST_F(OperatingTest, ThePausedJobsUserIsToldOnce) {
  FakeSession& a = OpenWith("a", 1);
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Step(PauseJob{"a", true, 1});
  cluster_.Pump();
  ASSERT_EQ(a.notices.size(), 1u);
  EXPECT_THAT(a.notices[0], HasSubstr("metsctl resume a"));
}

TEST_F(OperatingTest, WhoWaitsIsToldAfterTwoSecondsWhoHoldsTheDevice) {
  FakeSession& a = OpenWith("a", 8);
  for (auto& [id, buffer] : a.buffers) cluster_.Pin(a, id, true);
  cluster_.Report(a);
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(b, MiB(2));
  cluster_.Advance(absl::Milliseconds(1900));
  EXPECT_TRUE(b.notices.empty());
  cluster_.Advance(absl::Milliseconds(200));
  ASSERT_EQ(b.notices.size(), 1u);
  EXPECT_THAT(b.notices[0], HasSubstr("2 MiB on host0 for job 'b' for 2 s"));
  EXPECT_THAT(b.notices[0], HasSubstr("job 'a': 8 MiB resident"));
  EXPECT_THAT(b.notices[0], HasSubstr("8 MiB pinned"));
  cluster_.Advance(absl::Seconds(50));
  EXPECT_EQ(b.notices.size(), 1u);
  EXPECT_TRUE(a.notices.empty());
}

TEST_F(OperatingTest, WhatSharingCostIsSaidWhenTheLastProcessEnds) {
  FakeSession& a = OpenWith("a", 4);
  FakeSession& a2 = cluster_.Open("a");
  a.totals.evicted = MiB(12);
  a.totals.restored = MiB(11);
  a.totals.peak_live = MiB(5);
  cluster_.Report(a);
  cluster_.Advance(absl::Seconds(10));
  cluster_.Kill(a);
  EXPECT_TRUE(cluster_.ended_jobs.empty());
  cluster_.Kill(a2);
  ASSERT_EQ(cluster_.ended_jobs.size(), 1u);
  EXPECT_EQ(cluster_.ended_jobs[0].device, "host0");
  EXPECT_THAT(cluster_.ended_jobs[0].text,
              HasSubstr("job 'a' has ended on host0 after 10.0 s: it waited "
                        "0.0 s for memory and 0.0 s for its turn (0 % of its "
                        "time); 12 MiB left the device and 11 MiB came back; "
                        "it had at most 5 MiB"));
}

TEST_F(OperatingTest, WhatSharingCostIsOfThisRunOfTheName) {
  FakeSession& a = OpenWith("a", 4);
  a.totals.evicted = MiB(12);
  a.totals.peak_live = MiB(5);
  cluster_.Report(a);
  cluster_.Advance(absl::Seconds(10));
  cluster_.Kill(a);
  cluster_.Advance(absl::Seconds(20));
  FakeSession& again = OpenWith("a", 2);
  again.totals.evicted = MiB(3);
  again.totals.peak_live = MiB(2);
  cluster_.Report(again);
  cluster_.Advance(absl::Seconds(7));
  EXPECT_EQ(cluster_.job("a").totals.evicted, MiB(15));
  cluster_.Kill(again);
  ASSERT_EQ(cluster_.ended_jobs.size(), 2u);
  EXPECT_THAT(cluster_.ended_jobs[1].text, HasSubstr("after 7.0 s: it waited"));
  EXPECT_THAT(cluster_.ended_jobs[1].text,
              HasSubstr("3 MiB left the device and 0 B came back; it had at "
                        "most 2 MiB"));
}

TEST_F(OperatingTest, AJobThatHadNothingEndsInSilence) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Kill(a);
  EXPECT_TRUE(cluster_.ended_jobs.empty());
}

SessionOpened Wishes(int priority, Bytes guarantee, Bytes limit) {
  SessionOpened opened;
  opened.priority = priority;
  opened.guarantee = guarantee;
  opened.limit = limit;
  return opened;
}

TEST(CapsTest, WishesAreLoweredAndTheUserIsTold) {
  SessionOpened opened = Wishes(5, MiB(8), MiB(64));
  opened.caps = {2, MiB(4), MiB(32)};
  const std::string told = ApplyCaps(&opened);
  EXPECT_EQ(opened.priority, 2);
  EXPECT_EQ(opened.guarantee, MiB(4));
  EXPECT_EQ(opened.limit, MiB(32));
  EXPECT_THAT(told, HasSubstr("priority 5 to 2"));
  EXPECT_THAT(told, HasSubstr("guarantee 8 MiB to 4 MiB"));
  EXPECT_THAT(told, HasSubstr("limit 64 MiB to 32 MiB"));
}

TEST(CapsTest, WishesWithinTheCapsStay) {
  SessionOpened opened = Wishes(-1, MiB(2), MiB(16));
  opened.caps = {2, MiB(4), MiB(32)};
  EXPECT_EQ(ApplyCaps(&opened), "");
  EXPECT_EQ(opened.priority, -1);
  EXPECT_EQ(opened.guarantee, MiB(2));
  EXPECT_EQ(opened.limit, MiB(16));
}

TEST(CapsTest, AJobWithoutALimitGetsTheLargestThereIs) {
  SessionOpened opened = Wishes(0, MiB(64), Bytes());
  opened.caps.max_limit = MiB(32);
  ApplyCaps(&opened);
  EXPECT_EQ(opened.limit, MiB(32));
  EXPECT_EQ(opened.guarantee, MiB(32));
}

TEST(CapsTest, NarrowerCapsComeFirst) {
  const Caps caps = Narrowed({1, MiB(1), std::nullopt}, {5, {}, MiB(2)});
  EXPECT_EQ(caps.max_priority, 5);
  EXPECT_EQ(caps.max_guarantee, MiB(1));
  EXPECT_EQ(caps.max_limit, MiB(2));
}

TEST_F(OperatingTest, KillNamesAllProcessesOfTheJob) {
  FakeSession& a = OpenWith("a", 1);
  FakeSession& a2 = cluster_.Open("a");
  OpenWith("b", 1);
  cluster_.Lose(a2);
  cluster_.Step(KillJob{"a", absl::Seconds(3), 9});
  ASSERT_EQ(cluster_.ends.size(), 1u);
  EXPECT_THAT(cluster_.ends[0].sessions, UnorderedElementsAre(a.id, a2.id));
  EXPECT_EQ(cluster_.ends[0].grace, absl::Seconds(3));
  EXPECT_EQ(last().call, 9u);
  EXPECT_EQ(last().processes, 2);
}

}  // namespace
}  // namespace mets::core
