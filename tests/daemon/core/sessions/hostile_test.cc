#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;

class HostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    good_ = &cluster_.Open("good");
    bad_ = &cluster_.Open("bad");
    cluster_.Alloc(*good_, MiB(16));
    cluster_.Alloc(*bad_, MiB(16));
    cluster_.Pump();
    cluster_.Report(*good_);
    cluster_.Pump();
  }

  void ExpectRefused(const Input& input, const std::string& text) {
    cluster_.Send(*bad_, input);
    cluster_.Pump();
    EXPECT_TRUE(bad_->refused);
    EXPECT_THAT(bad_->refusal, HasSubstr(text));
    EXPECT_EQ(cluster_.device().resident, MiB(32));
    EXPECT_EQ(good_->buffers.size(), 1u);
    // What it holds comes back when its process ends.
    cluster_.Kill(*bad_);
    EXPECT_EQ(cluster_.device().resident, MiB(16));
  }

  BufferChanges Changes(const BufferReport& report) {
    BufferChanges changes;
    changes.session = bad_->id;
    changes.buffers = {report};
    return changes;
  }

  FakeCluster cluster_{FakeCluster::Config(MiB(64), MiB(64))};
  FakeSession* good_ = nullptr;
  FakeSession* bad_ = nullptr;
};

TEST_F(HostileTest, ReleasingAnUnknownChunk) {
  Release release;
  release.session = bad_->id;
  release.chunks = {ChunkId(12345)};
  ExpectRefused(release, "12345");
}

TEST_F(HostileTest, ReleasingAChunkOfSomebodyElse) {
  Release release;
  release.session = bad_->id;
  release.chunks = {good_->buffers.begin()->second.chunks[0].id};
  ExpectRefused(release, "not its own");
}

TEST_F(HostileTest, ReleasingAChunkTwiceInOneMessage) {
  const ChunkId own = bad_->buffers.begin()->second.chunks[0].id;
  Release release;
  release.session = bad_->id;
  release.chunks = {own, own};
  ExpectRefused(release, "not its own");
}

TEST_F(HostileTest, ReleasingOrphansThatItDoesNotHave) {
  Release release;
  release.session = bad_->id;
  release.orphan = MiB(1);
  ExpectRefused(release, "orphan");
}

TEST_F(HostileTest, ABufferOfAnAbsurdSize) {
  BufferReport report;
  report.id = BufferId(1);
  report.size = GiB(1 << 20);
  ExpectRefused(Changes(report), "impossible size");
}

TEST_F(HostileTest, ABufferWithoutBytes) {
  BufferReport report;
  report.id = BufferId(9);
  ExpectRefused(Changes(report), "impossible size");
}

TEST_F(HostileTest, ABufferThatChangesItsSize) {
  BufferReport report;
  report.id = BufferId(9);
  report.size = MiB(1);
  cluster_.Send(*bad_, Changes(report));
  report.size = MiB(2);
  ExpectRefused(Changes(report), "another size");
}

TEST_F(HostileTest, ASnapshotThatNobodyExpected) {
  Snapshot snapshot;
  snapshot.session = bad_->id;
  snapshot.last = true;
  ExpectRefused(snapshot, "nobody expected");
}

TEST_F(HostileTest, ReportsOnAnUnknownDevice) {
  BufferChanges changes;
  changes.session = bad_->id;
  changes.device = "cuda9";
  ExpectRefused(changes, "unknown device");
}

TEST_F(HostileTest, ASnapshotWithAChunkOfSomebodyElse) {
  cluster_.Lose(*bad_);
  bad_->connected = true;
  cluster_.Step(SessionResumed{bad_->id});
  Snapshot snapshot;
  snapshot.session = bad_->id;
  snapshot.chunks = {good_->buffers.begin()->second.chunks[0].id};
  snapshot.last = true;
  ExpectRefused(snapshot, "not its own");
}

TEST_F(HostileTest, ASnapshotThatClaimsMoreThanThePool) {
  cluster_.Lose(*bad_);
  bad_->connected = true;
  cluster_.Step(SessionResumed{bad_->id});
  Snapshot snapshot;
  snapshot.session = bad_->id;
  snapshot.orphan = GiB(1);
  ExpectRefused(snapshot, "more than the pool");
}

TEST_F(HostileTest, ARefusedSessionCannotResume) {
  Release release;
  release.session = bad_->id;
  release.chunks = {ChunkId(12345)};
  cluster_.Send(*bad_, release);
  cluster_.Pump();
  ASSERT_TRUE(bad_->refused);
  const auto actions =
      cluster_.core().Step(cluster_.now(), SessionResumed{bad_->id});
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_TRUE(
      std::holds_alternative<Refuse>(std::get<SessionAction>(actions[0])));
}

TEST_F(HostileTest, BadRequestsAreDeniedAndChangeNothing) {
  const std::vector<std::pair<std::vector<Bytes>, std::string>> cases = {
      {{}, "asks for nothing"},
      {{Bytes()}, "without bytes"},
      {{MiB(1), Bytes(-5)}, "without bytes"},
      {{GiB(1)}, "more than the whole pool"},
      {{Bytes(INT64_MAX), Bytes(INT64_MAX)}, "more than the whole pool"},
      {std::vector<Bytes>(300, KiB(64)), "ranges"},
  };
  uint64_t id = 100;
  for (const auto& [ranges, text] : cases) {
    const RequestId request(++id);
    bad_->requests[request] = {};
    cluster_.Send(
        *bad_, Acquire{bad_->id, request, "", ranges, absl::Seconds(1), false});
    cluster_.Pump();
    ASSERT_FALSE(bad_->denials.empty()) << text;
    EXPECT_THAT(bad_->denials.back().reason, HasSubstr(text));
    EXPECT_TRUE(bad_->denials.back().impossible);
    EXPECT_FALSE(bad_->refused);
  }
  EXPECT_EQ(cluster_.device().free, MiB(32));
}

TEST_F(HostileTest, TooManyRequestsAreDenied) {
  cluster_.Alloc(*good_, MiB(32));
  cluster_.Pump();
  for (int i = 0; i < 1030; ++i) cluster_.Alloc(*bad_, MiB(48));
  for (auto& [id, s] : cluster_.sessions()) {
    while (cluster_.DeliverToCore(*s)) {
    }
  }
  cluster_.Pump();
  EXPECT_EQ(bad_->denials.size(), 6u);
  EXPECT_FALSE(bad_->refused);
}

TEST_F(HostileTest, AnswersToUnknownOrdersAreIgnored) {
  cluster_.Send(*bad_, OrderDone{bad_->id, OrderId(99), {}, ""});
  cluster_.Send(*bad_, Forgotten{bad_->id, OrderId(99), {}});
  cluster_.Send(*bad_, Cancel{bad_->id, RequestId(99)});
  cluster_.Step(SessionEnded{SessionId(999)});
  cluster_.Step(SessionLost{SessionId(999)});
  cluster_.Step(SessionResumed{SessionId(999)});
  cluster_.Step(ExpectedSessionGone{SessionId(999)});
  cluster_.Pump();
  EXPECT_FALSE(bad_->refused);
}

TEST_F(HostileTest, AFullBufferTableRefuses) {
  CoreConfig config = FakeCluster::Config(MiB(64), MiB(64));
  config.max_buffers_per_session = 10;
  FakeCluster cluster(config);
  FakeSession& s = cluster.Open("s");
  BufferChanges changes;
  changes.session = s.id;
  for (int i = 1; i <= 11; ++i) {
    BufferReport report;
    report.id = BufferId(i);
    report.size = KiB(64);
    changes.buffers.push_back(report);
  }
  cluster.Send(s, changes);
  cluster.Pump();
  EXPECT_TRUE(s.refused);
  EXPECT_THAT(s.refusal, HasSubstr("more than 10 buffers"));
}

TEST_F(HostileTest, ReportedBuffersBeyondWhatItHoldsAreNotTaken) {
  BufferChanges changes;
  changes.session = bad_->id;
  for (int i = 100; i < 164; ++i) {
    BufferReport report;
    report.id = BufferId(i);
    report.size = MiB(16);
    report.idle = absl::Hours(1);
    changes.buffers.push_back(report);
  }
  cluster_.Send(*bad_, changes);
  cluster_.Pump();
  cluster_.Alloc(*good_, MiB(48), absl::Milliseconds(200));
  cluster_.Advance(absl::Milliseconds(100));
  EXPECT_LE(cluster_.device().swap_used, MiB(16));
}

}  // namespace
}  // namespace mets::core
