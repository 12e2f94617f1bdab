#include "daemon/core/scheduling/gate_keeper.h"

#include <gtest/gtest.h>

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
  FakeCluster cluster_{FakeCluster::Config(MiB(8), MiB(64))};
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

}  // namespace
}  // namespace mets::core
