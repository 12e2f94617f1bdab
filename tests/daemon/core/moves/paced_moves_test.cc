#include "daemon/core/moves/paced_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kSize = MiB(16);

// A device of four buffers, whose bus is so slow that 50 MB a second, a
// twentieth of it, may move beside a higher class.
class PacedMovesTest : public ::testing::Test {
 protected:
  static CoreConfig Config() {
    CoreConfig config = FakeCluster::Config(MiB(64), GiB(1));
    config.devices[0].bus_bytes_per_second = 1e9;
    config.interference_bound = 1e-5;
    return config;
  }
  PacedMovesTest() : cluster_(Config()) {}

  FakeSession& Open(const std::string& job, int priority, int buffers) {
    FakeSession& s = cluster_.Open(job, {1, {}, {}, priority});
    for (int i = 0; i < buffers; ++i) {
      cluster_.Alloc(s, kSize);
      cluster_.Pump();
    }
    cluster_.Report(s);
    cluster_.Pump();
    return s;
  }
  // Lets time pass, while `computing` does.
  void Compute(FakeSession& computing, absl::Duration time) {
    const BufferId used = computing.buffers.begin()->first;
    for (const absl::Time end = cluster_.now() + time; cluster_.now() < end;) {
      cluster_.Touch(computing, used, true);
      cluster_.Pin(computing, used, true);
      cluster_.Report(computing);
      cluster_.Advance(absl::Milliseconds(10));
    }
  }
  // The session has evicted one of its buffers for another, and said so.
  void MoveOne(FakeSession& s, FakeSession& computing) {
    Compute(computing, absl::Milliseconds(50));
    cluster_.Alloc(s, kSize);
    Compute(computing, absl::Milliseconds(50));
    cluster_.Report(s);
    cluster_.Pump();
    ASSERT_EQ(s.evicted, 1);
  }

  FakeCluster cluster_;
};

TEST_F(PacedMovesTest, MovesForALowerClassWaitWhileAHigherOneComputes) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  MoveOne(low, high);
  // 17 MB, of which 0.5 may go at once, are 0.33 s.
  cluster_.Alloc(low, kSize);
  Compute(high, absl::Milliseconds(200));
  EXPECT_EQ(low.evicted, 1);
  EXPECT_EQ(cluster_.job("low").waiting, 1);
  Compute(high, absl::Milliseconds(200));
  EXPECT_EQ(low.evicted, 2);
  EXPECT_EQ(cluster_.job("low").waiting, 0);
}

TEST_F(PacedMovesTest, WhileNoHigherClassComputesNothingWaits) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  MoveOne(low, high);
  cluster_.Pin(high, high.buffers.begin()->first, false);
  cluster_.Report(high);
  cluster_.Advance(absl::Seconds(2));
  for (int moves = 2; moves < 5; ++moves) {
    cluster_.Alloc(low, kSize);
    cluster_.Advance(absl::Milliseconds(50));
    cluster_.Report(low);
    cluster_.Pump();
    EXPECT_EQ(low.evicted, moves);
  }
}

TEST_F(PacedMovesTest, AHigherClassMovesAtOnce) {
  FakeSession& low = Open("low", 0, 1);
  FakeSession& high = Open("high", 5, 3);
  for (int i = 0; i < 3; ++i) {
    cluster_.Alloc(high, kSize);
    Compute(low, absl::Milliseconds(50));
    cluster_.Report(high);
    cluster_.Pump();
    EXPECT_EQ(cluster_.job("high").waiting, 0);
  }
  EXPECT_EQ(high.evicted + low.evicted, 3);
}

TEST_F(PacedMovesTest, WhatALowerClassLosesToAHigherOneIsNotItsOwnMove) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  Compute(high, absl::Milliseconds(50));
  cluster_.Alloc(high, kSize);
  Compute(high, absl::Milliseconds(50));
  cluster_.Report(low);
  cluster_.Pump();
  ASSERT_EQ(low.evicted, 1);
  cluster_.Alloc(low, kSize);
  Compute(high, absl::Milliseconds(50));
  EXPECT_EQ(low.evicted, 2);
}

TEST_F(PacedMovesTest, ARestoreWaitsAlsoWhereMemoryIsFree) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  MoveOne(low, high);
  BufferId away;
  for (auto& [id, buffer] : low.buffers) {
    if (!buffer.resident) away = id;
  }
  for (auto& [id, buffer] : std::map(low.buffers)) {
    if (id != away) cluster_.Free(low, id, false);
  }
  cluster_.Touch(low, away, false);
  Compute(high, absl::Milliseconds(100));
  EXPECT_FALSE(low.buffers.at(away).resident);
  Compute(high, absl::Milliseconds(400));
  EXPECT_TRUE(low.buffers.at(away).resident);
}

TEST_F(PacedMovesTest, NobodyIsHeldBackForMoreThanHalfOfItsWait) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  MoveOne(low, high);
  cluster_.Alloc(low, kSize, absl::Milliseconds(200));
  Compute(high, absl::Milliseconds(80));
  EXPECT_EQ(low.evicted, 1);
  Compute(high, absl::Milliseconds(60));
  EXPECT_EQ(low.evicted, 2);
  EXPECT_TRUE(low.denials.empty());
}

TEST_F(PacedMovesTest, ADenialSaysThatTheRequestWasHeldBack) {
  FakeSession& high = Open("high", 5, 1);
  FakeSession& low = Open("low", 0, 3);
  MoveOne(low, high);
  for (auto& [id, buffer] : low.buffers) cluster_.Pin(low, id, true);
  cluster_.Report(low);
  cluster_.Alloc(low, kSize, absl::Milliseconds(200));
  Compute(high, absl::Milliseconds(300));
  ASSERT_EQ(low.denials.size(), 1u);
  EXPECT_THAT(low.denials[0].reason, HasSubstr("held back"));
  Compute(high, absl::Seconds(1));
  cluster_.Alloc(low, kSize, absl::Milliseconds(200));
  Compute(high, absl::Milliseconds(300));
  ASSERT_EQ(low.denials.size(), 2u);
  EXPECT_THAT(low.denials[1].reason, Not(HasSubstr("held back")));
}

}  // namespace
}  // namespace mets::core
