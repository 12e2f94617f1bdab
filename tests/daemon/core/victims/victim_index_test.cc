#include "daemon/core/victims/victim_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

#include "daemon/core/victims/victim_walk.h"
#include "daemon/policy/registry.h"

namespace mets::core {
namespace {

// Sessions with random buffers of one size class, changed at random.
class VictimIndexTest : public ::testing::TestWithParam<std::string> {
 protected:
  VictimIndexTest() : policy_(*policy::MakePolicy(GetParam())) {
    for (int i = 1; i <= 5; ++i) {
      Session& session =
          sessions_.Add(SessionId(i), DomainId(1), "job" + std::to_string(i));
      session.job->priority = i % 2;
      session.job->weight = 1 + i / 4;
      Refresh(session);
      for (int b = 1; b <= 30; ++b) {
        Buffer& buffer =
            session.holdings[0].buffers.FindOrAdd(BufferId(b), Size());
        Change(session, buffer);
      }
    }
  }

  int Below(int n) { return static_cast<int>(random_() % n); }
  // Within a class, equal sizes: there, keys order exactly like scores.
  Bytes Size() { return MiB(1 << Below(3)); }

  void Refresh(Session& session) {
    VictimOwner owner;
    owner.session = &session;
    owner.takes_part = session.serves();
    owner.priority = session.job->priority;
    owner.weight = session.job->weight;
    owner.not_before = session.not_before;
    owner.held_may_leave = session.holdings[0].waits_at_gate;
    index_.SetOwner(owner);
  }

  void Change(Session& session, Buffer& buffer) {
    session.holdings[0].buffers.Set(buffer, BufferState(Below(8) == 0),
                                    Mobility(Below(8) == 0));
    buffer.pinned = Below(8) == 0;
    buffer.last_use = now_ - absl::Milliseconds(Below(10000));
    const bool known = Below(2) == 0;
    buffer.next_use = known ? now_ + absl::Milliseconds(Below(10000))
                            : absl::InfiniteFuture();
    buffer.slot = SlotId(Below(2));
    buffer.skip_until = now_ + absl::Milliseconds(Below(4) == 0 ? 5 : 0);
    index_.Update(session, buffer, now_);
  }

  void CheckAll() {
    ASSERT_TRUE(index_.Check().ok()) << index_.Check();
    for (auto& [id, session] : sessions_.all()) {
      for (auto& [buffer_id, buffer] : session.holdings[0].buffers.all()) {
        const absl::Status status = index_.CheckBuffer(session, buffer);
        ASSERT_TRUE(status.ok()) << status;
      }
    }
  }

  double Score(const Job& job, const Buffer& buffer) {
    VictimFacts facts;
    facts.size = buffer.size;
    facts.last_use = buffer.last_use;
    facts.next_use = buffer.next_use;
    facts.clean = buffer.slot.ok();
    facts.copy_time = absl::Nanoseconds(static_cast<int64_t>(
        0.1 * (facts.clean ? 1 : 2) * static_cast<double>(facts.size.count())));
    const double score = policy_->Score(now_, facts);
    return score > 0 ? score / job.weight : score * job.weight;
  }

  // What a scan over everything says, by score.
  std::vector<const Buffer*> Scan(int priority) {
    using Row = std::tuple<bool, double, bool, int64_t, SessionId, BufferId>;
    std::vector<std::pair<Row, const Buffer*>> rows;
    for (auto& [id, session] : sessions_.all()) {
      if (!session.serves()) continue;
      for (auto& [buffer_id, b] : session.holdings[0].buffers.all()) {
        const bool can_leave = session.holdings[0].waits_at_gate
                                   ? b.CanLeaveAtGate()
                                   : b.CanLeave();
        if (!can_leave || b.skip_until > now_) continue;
        rows.push_back(
            {{session.job->priority > priority, -Score(*session.job, b),
              !b.slot.ok(), -b.size.count(), id, buffer_id},
             &b});
      }
    }
    std::sort(rows.begin(), rows.end());
    std::vector<const Buffer*> buffers;
    for (const auto& [row, buffer] : rows) buffers.push_back(buffer);
    return buffers;
  }

  std::vector<const Buffer*> Walk(int priority) {
    index_.Wake(now_);
    index_.Freeze();
    VictimWalk walk(index_, now_, priority);
    std::vector<const Buffer*> buffers;
    VictimWalk::Candidate candidate;
    while (walk.Next(&candidate)) buffers.push_back(candidate.buffer);
    index_.DropHeads(walk.stale());
    index_.Thaw(now_);
    return buffers;
  }

  std::mt19937 random_{1};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::unique_ptr<VictimPolicy> policy_;
  SessionTable sessions_{1};
  VictimIndex index_{policy_.get(), 10e9};
};

TEST_P(VictimIndexTest, AWalkGivesWhatAScanOfEverythingGives) {
  for (int round = 0; round < 200; ++round) {
    now_ += absl::Milliseconds(Below(20));
    Session& session = *sessions_.Find(SessionId(1 + Below(5)));
    for (int i = 0; i < 10; ++i) {
      Change(session,
             *session.holdings[0].buffers.Find(BufferId(1 + Below(30))));
    }
    session.unresponsive = Below(4) == 0;
    session.holdings[0].waits_at_gate = Below(3) == 0;
    Refresh(session);
    CheckAll();
    for (int priority : {0, 1}) ASSERT_EQ(Walk(priority), Scan(priority));
  }
}

TEST_P(VictimIndexTest, ASessionThatComputesLaterKeepsTheIndexInOrder) {
  for (int round = 0; round < 100; ++round) {
    now_ += absl::Milliseconds(Below(20));
    Session& session = *sessions_.Find(SessionId(1 + Below(5)));
    session.not_before =
        Below(4) == 0 ? absl::InfinitePast() : now_ + absl::Seconds(Below(9));
    Refresh(session);
    Change(session, *session.holdings[0].buffers.Find(BufferId(1 + Below(30))));
    CheckAll();
    EXPECT_EQ(Walk(0).size(), Scan(0).size());
  }
}

// Also where its buffers were used last, or are used first.
TEST_P(VictimIndexTest, ASessionThatWaitsForItsTurnLosesFirst) {
  const auto policy = *policy::MakePolicy(GetParam());
  VictimIndex index(policy.get(), 10e9);
  SessionTable sessions(1);
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  for (int i = 1; i <= 2; ++i) {
    Session& session = sessions.Add(SessionId(i), DomainId(1), "job");
    Buffer& buffer = session.holdings[0].buffers.FindOrAdd(BufferId(1), MiB(1));
    buffer.last_use = now - absl::Seconds(9 - i);
    buffer.next_use = now + absl::Seconds(i == 2 ? 1 : 60);
    index.Update(session, buffer, now);
    VictimOwner owner;
    owner.session = &session;
    owner.takes_part = true;
    if (i == 2) owner.not_before = now + absl::Seconds(30);
    index.SetOwner(owner);
  }
  index.Freeze();
  VictimWalk walk(index, now, 0);
  VictimWalk::Candidate candidate;
  ASSERT_TRUE(walk.Next(&candidate));
  EXPECT_EQ(candidate.session().id, SessionId(2));
  ASSERT_TRUE(walk.Next(&candidate));
  EXPECT_EQ(candidate.session().id, SessionId(1));
  index.Thaw(now);
}

TEST_P(VictimIndexTest, ARemovedSessionLeavesNothing) {
  for (int i = 1; i <= 5; ++i) {
    index_.RemoveAll(SessionId(i),
                     sessions_.Find(SessionId(i))->holdings[0].buffers);
  }
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Walk(0).empty());
  EXPECT_TRUE(index_.best().empty());
  EXPECT_TRUE(index_.Check().ok());
}

TEST_P(VictimIndexTest, AWalkLeavesWhatItIsToldToLeave) {
  now_ += absl::Seconds(1);
  index_.Wake(now_);
  index_.Freeze();
  VictimWalk walk(index_, now_, 1);
  VictimWalk::Candidate candidate;
  ASSERT_TRUE(walk.Next(&candidate));
  const SessionId left = candidate.session().id;
  walk.LeaveSession(left);
  ASSERT_TRUE(walk.Next(&candidate));
  EXPECT_NE(candidate.session().id, left);
  const SessionId kept = candidate.session().id;
  walk.KeepOnly({kept});
  while (walk.Next(&candidate)) EXPECT_EQ(candidate.session().id, kept);
  index_.Thaw(now_);
}

TEST_P(VictimIndexTest, WhatIsTakenTogetherIsWhatComesNext) {
  now_ += absl::Seconds(1);
  const std::vector<const Buffer*> all = Walk(1);
  index_.Freeze();
  VictimWalk walk(index_, now_, 1);
  VictimWalk::Candidates taken;
  walk.Take(Bytes(), 3, &taken);
  ASSERT_EQ(taken.size(), 3u);
  walk.Take(all[3]->size + Bytes(1), 0, &taken);
  ASSERT_EQ(taken.size(), 5u);
  for (size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i].buffer, all[i]);
    EXPECT_EQ(taken[i].size, all[i]->size);
    EXPECT_FALSE(walk.HasLeft(*taken[i].group));
  }
  walk.LeaveGroup(*taken[0].group);
  EXPECT_TRUE(walk.HasLeft(*taken[0].group));
  VictimWalk::Candidate candidate;
  while (walk.Next(&candidate)) EXPECT_NE(candidate.group, taken[0].group);
  index_.Thaw(now_);
}

INSTANTIATE_TEST_SUITE_P(Policies, VictimIndexTest,
                         ::testing::ValuesIn(policy::PolicyNames()));

}  // namespace
}  // namespace mets::core
