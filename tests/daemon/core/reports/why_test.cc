// Answers to "why does my job not compute?".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class WhyTest : public ::testing::Test {
 protected:
  WhyAnswer Only(const std::string& job) {
    const std::vector<WhyAnswer> answers = cluster_.core().Why(job);
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? WhyAnswer() : answers[0];
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(64))};
};

TEST_F(WhyTest, AWaitingJobIsToldWhatItsDenialWouldSay) {
  FakeSession& a = cluster_.Open("bert");
  FakeSession& b = cluster_.Open("gpt");
  cluster_.AllocPinned(a, MiB(60));
  cluster_.Alloc(b, MiB(16), absl::Seconds(30));
  cluster_.Advance(absl::Seconds(3));
  const WhyAnswer answer = Only("gpt");
  EXPECT_EQ(answer.phase, JobPhase::kWaitsForMemory);
  EXPECT_EQ(answer.summary,
            "waits for 16 MiB since 3 s, for at most 27 s more");
  EXPECT_THAT(answer.report, HasSubstr("job 'bert': 60 MiB resident"));
  EXPECT_THAT(answer.report, HasSubstr("Pool of host0: 64 MiB, 4 MiB free."));
  cluster_.Advance(absl::Seconds(28));
  ASSERT_EQ(b.denials.size(), 1u);
  // One text: what follows the first line's number is the same.
  const std::string& denial = b.denials[0].reason;
  EXPECT_THAT(denial, HasSubstr("only memory that is pinned, held or fixed is "
                                "left"));
  EXPECT_THAT(denial, HasSubstr("could not be had within 30 s"));
  EXPECT_THAT(denial, HasSubstr("Swap space: 0 B of 64 MiB used."));
  EXPECT_THAT(denial, HasSubstr("Tried: in "));
  EXPECT_THAT(denial, HasSubstr("Advice: "));
}

TEST_F(WhyTest, HoldersAreToldByWhatTheyDo) {
  FakeSession& a = cluster_.Open("idle");
  FakeSession& b = cluster_.Open("asker");
  const BufferId pinned = cluster_.Alloc(a, MiB(48));
  cluster_.Alloc(b, MiB(8));
  cluster_.Pump();
  cluster_.Pin(a, pinned, true);
  cluster_.Report(a);
  cluster_.Alloc(b, MiB(32), absl::Seconds(30));
  cluster_.Advance(absl::Seconds(3));
  const std::string report = Only("asker").report;
  EXPECT_THAT(report, HasSubstr("48 MiB pinned, idle\n"));
  EXPECT_THAT(report, HasSubstr("0 B pinned, waits for memory\n"));
}

TEST_F(WhyTest, WhoIsServedBeforeIsCounted) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  FakeSession& c = cluster_.Open("c");
  cluster_.AllocPinned(a, MiB(60));
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  cluster_.Alloc(c, MiB(2));
  cluster_.Advance(absl::Seconds(2));
  EXPECT_THAT(Only("c").reasons, Contains("1 request is served before"));
}

TEST_F(WhyTest, IdleMemoryOfOthersIsNamed) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(60));
  cluster_.Pump();
  a.skips = true;  // It stays, whatever is ordered.
  cluster_.Report(a);
  cluster_.Advance(absl::Seconds(5));
  cluster_.Alloc(b, MiB(16));
  cluster_.Advance(absl::Seconds(2));
  EXPECT_THAT(
      Only("b").reasons,
      Contains(StartsWith("60 MiB belong to jobs that have been idle")));
}

TEST_F(WhyTest, AJobThatDoesNotAnswerIsSaidToDoSo) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(48));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  a.silent = true;
  cluster_.Alloc(b, MiB(32));
  cluster_.Advance(absl::Seconds(6));
  EXPECT_EQ(Only("a").phase, JobPhase::kSilent);
  EXPECT_FALSE(Only("a").advice.empty());
}

// Stopped before it has reported a buffer: metsd cannot order one out.
TEST_F(WhyTest, AJobThatHasToldNothingIsSaidToHold) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(60));
  cluster_.Pump();
  cluster_.Alloc(b, MiB(16), absl::Seconds(30));
  cluster_.Advance(absl::Seconds(3));
  EXPECT_THAT(Only("b").report,
              HasSubstr("jobs that hold memory have not told yet what of it "
                        "can leave"));
  EXPECT_THAT(Only("b").report, HasSubstr("end or continue it"));
}

TEST_F(WhyTest, NobodyIsNoAnswer) {
  EXPECT_TRUE(cluster_.core().Why("nobody").empty());
}

TEST_F(WhyTest, AnIdleJobWaitsForNothing) {
  cluster_.Open("a");
  cluster_.Advance(absl::Seconds(5));
  EXPECT_EQ(Only("a").phase, JobPhase::kIdle);
}

TEST_F(WhyTest, AComputingJobIsToldWhatKeepsItsMemoryAway) {
  FakeSession& a = cluster_.Open("a");
  for (int i = 0; i < 4; ++i) cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  EXPECT_THAT(Only("a").reasons, ::testing::IsEmpty());
  cluster_.Step(SetJobLimit{"a", MiB(32), 1});
  cluster_.Pump();
  cluster_.Report(a);
  const WhyAnswer limited = Only("a");
  EXPECT_EQ(limited.phase, JobPhase::kComputes);
  EXPECT_THAT(limited.reasons,
              Contains("32 MiB of it are swapped, for its limit of 32 MiB"));
  EXPECT_THAT(limited.advice,
              Contains("a higher limit: metsctl limit a SIZE; it has had 64 "
                       "MiB"));
}

TEST_F(WhyTest, AJobThatHasLessThanItsLimitForAMomentIsToldOfItsLimit) {
  FakeSession& a = cluster_.Open("a");
  std::vector<BufferId> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(cluster_.Alloc(a, MiB(16)));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Step(SetJobLimit{"a", MiB(32), 1});
  cluster_.Pump();
  // The step ends: what is left is swapped.
  for (BufferId id : buffers) {
    if (a.buffers.at(id).resident) cluster_.Free(a, id, false);
  }
  a.totals.peak_live = MiB(48);
  cluster_.Report(a);
  EXPECT_THAT(Only("a").reasons,
              Contains("16 MiB of it are swapped, for its limit of 32 MiB"));
}

TEST_F(WhyTest, AJobWithRoomIsNotToldThatThereIsNone) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Step(EvictJob{"a", 1});
  cluster_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(a.evicted, 1);
  const WhyAnswer answer = Only("a");
  EXPECT_THAT(answer.reasons, Contains("16 MiB of it are swapped; they come "
                                       "back when ops use them"));
  EXPECT_THAT(answer.advice, ::testing::IsEmpty());
}

TEST_F(WhyTest, AComputingJobIsToldThatOthersNeedItsMemory) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  for (int i = 0; i < 4; ++i) cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Alloc(b, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  EXPECT_THAT(Only("a").reasons,
              Contains(HasSubstr("16 MiB of it are swapped, because the jobs "
                                 "together have more")));
}

// Its own device may be free: it waits for the other one.
TEST(WhyOnTwoDevicesTest, AJobIsToldWhoHasTheOtherDeviceOfItsTurn) {
  CoreConfig config = FakeCluster::Config(MiB(64), MiB(64));
  config.devices.push_back(config.devices[0]);
  config.devices[1].id = DeviceId(2);
  config.devices[1].name = "host1";
  FakeCluster cluster(config);
  const auto on = [](const char* device) {
    return FakeCluster::Wish(1, Bytes(), Bytes(), 0, /*is_gated=*/true, device);
  };
  FakeSession& x = cluster.Open("x", on("host1"));
  FakeSession& a0 = cluster.Open("a", on("host0"));
  FakeSession& a1 = cluster.Open("a", on("host1"));
  cluster.Open("y", on("host0"));
  cluster.Advance(absl::Seconds(2));
  cluster.WaitAtGate(x);
  cluster.Pump();
  ASSERT_TRUE(x.gate.open);
  for (FakeSession* session : {&a0, &a1}) cluster.WaitAtGate(*session);
  cluster.Pump();
  ASSERT_FALSE(a0.gate.open);
  ASSERT_FALSE(a1.gate.open);
  const std::vector<WhyAnswer> answers = cluster.core().Why("a");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].device, "host0");
  EXPECT_EQ(answers[0].phase, JobPhase::kWaitsForTurn);
  EXPECT_THAT(answers[0].reasons,
              Contains("its turns are on host0, host1 at the same time"));
  EXPECT_THAT(answers[0].reasons, Contains(StartsWith("'x' has host1 since")));
  EXPECT_THAT(answers[1].reasons,
              Contains(StartsWith("'x' has the device since")));
}

}  // namespace
}  // namespace mets::core
