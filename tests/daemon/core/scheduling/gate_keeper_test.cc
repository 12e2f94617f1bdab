#include "daemon/core/scheduling/gate_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

StepNeed Need(const FakeSession& session) {
  return {session.id, "host0", MiB(6), MiB(6), absl::Seconds(1)};
}

int Swapped(const FakeSession& session) {
  int swapped = 0;
  for (const auto& [id, buffer] : session.buffers) swapped += !buffer.resident;
  return swapped;
}

// Two jobs of 6 MiB on a device of 8.
class GateKeeperTest : public ::testing::Test {
 protected:
  FakeSession& OpenWithSixBuffers(const std::string& job) {
    FakeSession& session = cluster_.Open(job);
    for (int i = 0; i < 6; ++i) cluster_.Alloc(session, MiB(1));
    cluster_.Pump();
    cluster_.Report(session);
    cluster_.Advance(absl::Milliseconds(100));
    return session;
  }
  // In a quantum of "a", whose step needs so much, all of its buffers come
  // back, and it allocates another one.
  void NeedSeven(Bytes peak) {
    FakeSession& a = OpenWithSixBuffers("a");
    b_ = &OpenWithSixBuffers("b");
    StepNeed need = Need(a);
    need.peak = peak;
    cluster_.Send(a, need);
    cluster_.Send(*b_, Need(*b_));
    cluster_.Pump();
    ASSERT_TRUE(a.gate.open);
    for (const auto& [id, buffer] : a.buffers) {
      if (!buffer.resident) cluster_.Touch(a, id, /*write=*/true);
    }
    cluster_.Pump();
    cluster_.Report(a);
    cluster_.Report(*b_);
    cluster_.Advance(absl::Milliseconds(100));
    ASSERT_EQ(Swapped(a), 0);
    cluster_.Alloc(a, MiB(1));
    cluster_.Advance(absl::Milliseconds(20));
    EXPECT_TRUE(a.requests.empty());
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(8), MiB(64))};
  FakeSession* b_ = nullptr;
};

TEST_F(GateKeeperTest, WhoWaitsMakesRoomWhenAQuantumBegins) {
  FakeSession& a = OpenWithSixBuffers("a");
  FakeSession& b = OpenWithSixBuffers("b");
  const int before = b.evicted;
  ASSERT_GT(Swapped(a), 0);
  cluster_.Send(a, Need(a));
  cluster_.Send(b, Need(b));
  cluster_.Pump();
  EXPECT_TRUE(a.gate.open);
  EXPECT_FALSE(b.gate.open);
  // Before "a" has asked for anything.
  EXPECT_EQ(b.evicted - before, Swapped(a));
}

// Its step needs 7 MiB, and a little between them.
TEST_F(GateKeeperTest, AQuantumHasRoomForAStepThatFits) {
  NeedSeven(MiB(7));
  EXPECT_EQ(Swapped(*b_), 6);
}

// A plan within the step may be cheaper.
TEST_F(GateKeeperTest, AQuantumHasNoRoomForAStepThatDoesNotFit) {
  NeedSeven(MiB(8));
  EXPECT_EQ(Swapped(*b_), 5);
}

// Two gated jobs, all of whose buffers are held, on a device of 8 MiB: "a" has
// 6 of them and computes, "b" has 2, will need 6, and waits for its turn.
class GatedTest : public ::testing::Test {
 protected:
  explicit GatedTest(CoreConfig config = FakeCluster::Config(MiB(8), MiB(64)))
      : cluster_(std::move(config)) {
    cluster_.WaitAtGate(a_);
    cluster_.Pump();
    Alloc(a_, 6);
    cluster_.Advance(absl::Seconds(2));
    Alloc(b_, 2);
    METS_CHECK(a_.gate.open && !b_.gate.open);
    cluster_.WaitAtGate(b_);
  }
  static FakeCluster::Wish Gated() { return {1, Bytes(), Bytes(), 0, true}; }
  void Alloc(FakeSession& session, int mib) {
    for (int i = 0; i < mib; ++i) cluster_.Alloc(session, MiB(1));
    cluster_.Pump();
    cluster_.Report(session);
    cluster_.Pump();
  }
  // Asks for one of its buffers that are in swap space.
  void TouchSwapped(FakeSession& session) {
    const auto swapped = std::find_if(
        session.buffers.begin(), session.buffers.end(),
        [](const auto& buffer) { return !buffer.second.resident; });
    ASSERT_NE(swapped, session.buffers.end());
    cluster_.Touch(session, swapped->first, /*write=*/false);
    cluster_.Pump();
  }
  // Until the quantum has ended.
  void Swap(FakeSession& next) {
    for (int i = 0; i < 100 && !next.gate.open; ++i) {
      cluster_.Advance(absl::Milliseconds(10));
    }
    ASSERT_TRUE(next.gate.open);
  }

  FakeCluster cluster_;
  FakeSession& a_ = cluster_.Open("a", Gated());
  FakeSession& b_ = cluster_.Open("b", Gated());
};

TEST_F(GatedTest, HeldBuffersLeaveOnlyWhileTheirSessionWaitsAtItsGate) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.Advance(absl::Milliseconds(100));
  // Its gate is closed, but its program may be doing anything.
  EXPECT_EQ(a_.evicted, 0);
  EXPECT_EQ(b_.requests.size(), 4u);
  cluster_.WaitAtGate(a_);
  cluster_.Advance(absl::Milliseconds(50));
  EXPECT_EQ(a_.evicted, 4);
  EXPECT_TRUE(b_.requests.empty());
}

// Or it would compute while it does not know.
TEST_F(GatedTest, WhoAttachesKnowsFirstThatItsGateIsClosed) {
  FakeSession& c = cluster_.Open("c", Gated());
  EXPECT_FALSE(c.gate.open);
  EXPECT_TRUE(c.ready_behind_gate);
}

TEST_F(GatedTest, WhoBeginsToWaitMakesRoomForTheQuantumThatHasBegun) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.WaitAtGate(a_);
  cluster_.Pump();
  cluster_.Report(a_);
  cluster_.Report(b_);
  Swap(a_);
  EXPECT_EQ(b_.evicted, 0);
  cluster_.WaitAtGate(b_);
  cluster_.Pump();
  // Before "a" has asked for anything.
  EXPECT_EQ(b_.evicted, 4);
}

// It has 6 MiB, 4 of them in swap space, and its step needs 8.
TEST_F(GatedTest, AQuantumHasRoomForAllThatTheStepNeeds) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.WaitAtGate(a_);
  cluster_.Pump();
  cluster_.Report(a_);
  cluster_.Send(
      a_, StepNeed{a_.id, "host0", MiB(8), MiB(6), absl::Milliseconds(50)});
  cluster_.Send(b_, Need(b_));
  Swap(a_);
  cluster_.Report(b_);
  cluster_.WaitAtGate(b_);
  cluster_.Pump();
  EXPECT_EQ(b_.evicted, 6);
}

// One order for all that the quantum's job lacks, not one a request.
TEST_F(GatedTest, ARequestMakesRoomForTheWholeQuantum) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.WaitAtGate(a_);
  cluster_.Pump();
  cluster_.Report(a_);
  cluster_.Report(b_);
  Swap(a_);
  b_.skips = true;
  cluster_.WaitAtGate(b_);
  cluster_.Pump();
  ASSERT_EQ(b_.evicted, 0);
  b_.skips = false;
  cluster_.Advance(absl::Milliseconds(15));
  TouchSwapped(a_);
  EXPECT_EQ(b_.evicted, 4);
}

class HandOverTest : public GatedTest {
 protected:
  static CoreConfig SmallExtents() {
    CoreConfig config = FakeCluster::Config(MiB(8), MiB(64));
    config.extent_size = KiB(512);
    return config;
  }
  HandOverTest() : GatedTest(SmallExtents()) {}

  // `next` gets the device and all its buffers.
  void HandOver(FakeSession& from, FakeSession& next) {
    Swap(next);
    cluster_.WaitAtGate(from);
    for (const auto& [id, buffer] : next.buffers) {
      if (!buffer.resident) cluster_.Touch(next, id, /*write=*/true);
    }
    cluster_.Advance(absl::Milliseconds(20));
    cluster_.Report(from);
    cluster_.Report(next);
    cluster_.Pump();
    ASSERT_EQ(Swapped(next), 0);
  }
};

// Those that come back leave them.
TEST_F(HandOverTest, TheSlotsAreUsedAgain) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.WaitAtGate(a_);
  cluster_.Advance(absl::Milliseconds(20));
  cluster_.Report(a_);
  cluster_.Report(b_);
  HandOver(b_, a_);
  HandOver(a_, b_);
  const std::set<ExtentId> extents = a_.extents;
  for (int i = 0; i < 10; ++i) {
    HandOver(i % 2 == 0 ? b_ : a_, i % 2 == 0 ? a_ : b_);
  }
  EXPECT_EQ(a_.extents, extents);
}

TEST_F(GatedTest, WhoHoldsWithoutWaitingIsNamedInADenial) {
  Swap(b_);
  cluster_.Alloc(b_, MiB(1), absl::Milliseconds(50));
  cluster_.Advance(absl::Milliseconds(60));
  ASSERT_EQ(b_.denials.size(), 1u);
  EXPECT_THAT(
      b_.denials[0].reason,
      testing::AllOf(testing::HasSubstr("only memory that is pinned, held or "
                                        "fixed is left"),
                     testing::HasSubstr("job 'a': 6 MiB resident")));
}

// It may be in the middle of a section whenever its stream breaks.
TEST_F(GatedTest, WhoComesBackDoesNotWaitAnyMore) {
  Swap(b_);
  Alloc(b_, 4);
  cluster_.WaitAtGate(a_);
  cluster_.DeliverToCore(a_);
  cluster_.Lose(a_);
  cluster_.Advance(absl::Milliseconds(20));
  cluster_.Resume(a_);
  cluster_.Advance(absl::Milliseconds(500));
  EXPECT_EQ(a_.evicted, 0);
  EXPECT_EQ(b_.requests.size(), 4u);
}

}  // namespace
}  // namespace mets::core
