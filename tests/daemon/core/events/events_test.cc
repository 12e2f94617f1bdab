// What the core says about its decisions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

CoreConfig Noting(Bytes pool, Bytes swap) {
  CoreConfig config = FakeCluster::Config(pool, swap);
  config.events = true;
  return config;
}

// A cluster whose core says what it decides.
class EventsTest : public ::testing::Test {
 protected:
  std::vector<Event> Of(EventKind kind) {
    std::vector<Event> found;
    for (const Event& event : cluster_.events) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }

  FakeCluster cluster_{Noting(MiB(64), MiB(256))};
};

TEST_F(EventsTest, ManyBuffersForOneRequestAreOneEvent) {
  FakeSession& bert = cluster_.Open("bert");
  FakeSession& resnet = cluster_.Open("resnet");
  for (int i = 0; i < 16; ++i) cluster_.Alloc(bert, MiB(4));
  cluster_.Pump();
  cluster_.Report(bert);
  cluster_.Pump();
  cluster_.Alloc(resnet, MiB(24));
  cluster_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(resnet.buffers.size(), 1u);
  const std::vector<Event> evicted = Of(EventKind::kEvicted);
  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0].job, "bert");
  EXPECT_EQ(evicted[0].for_job, "resnet");
  EXPECT_EQ(evicted[0].cause, EvictCause::kRequest);
  EXPECT_EQ(evicted[0].bytes, MiB(24));
  EXPECT_EQ(evicted[0].copied, MiB(24));
  EXPECT_EQ(evicted[0].count, 6);
  EXPECT_THAT(EventText(evicted[0]),
              StartsWith("evicted 24 MiB in 6 buffers of 'bert', for "
                         "'resnet': "));
}

TEST_F(EventsTest, AJobThatIsRefusedADeviceIsToldOf) {
  cluster_.Step(DrainDevice{"host0", true, 1});
  FakeSession& late = cluster_.Open("late");
  ASSERT_EQ(late.ready.size(), 1u);
  const std::vector<Event> denied = Of(EventKind::kDenied);
  ASSERT_EQ(denied.size(), 1u);
  EXPECT_EQ(denied[0].job, "late");
  EXPECT_EQ(denied[0].text, late.ready[0].error);
  EXPECT_THAT(denied[0].text, HasSubstr("being drained"));
}

TEST_F(EventsTest, SharesArePublishedTakenAndGone) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId buffer = cluster_.Alloc(a, MiB(8));
  cluster_.Pump();
  cluster_.Publish(a, buffer, "weights", "");
  cluster_.Pump();
  cluster_.AttachShare(b, "weights", "", Bytes());
  cluster_.Pump();
  cluster_.Kill(a);
  EXPECT_TRUE(Of(EventKind::kShareGone).empty());
  cluster_.DetachShare(b, "weights");
  cluster_.Pump();
  const auto only = [this](EventKind kind) {
    const std::vector<Event> found = Of(kind);
    return found.size() == 1 ? EventText(found[0]) : std::string("not one");
  };
  EXPECT_EQ(only(EventKind::kShared),
            "'a' has published share 'weights' of 8 MiB on host0");
  EXPECT_EQ(only(EventKind::kShareTaken),
            "a process of 'b' has attached share 'weights' of 8 MiB");
  EXPECT_EQ(only(EventKind::kShareGone),
            "share 'weights' is gone: 'b' was the last to have its 8 MiB");
}

TEST_F(EventsTest, WhatComesBackIsOneEventOfItsBurst) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId first = cluster_.Alloc(a, MiB(32));
  cluster_.Alloc(a, MiB(16));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  const BufferId other = cluster_.Alloc(b, MiB(40));
  cluster_.Advance(absl::Milliseconds(50));
  cluster_.Free(b, other, false);
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Touch(a, first, false);
  cluster_.Advance(absl::Milliseconds(50));
  cluster_.Report(a);
  cluster_.Pump();
  cluster_.Advance(absl::Milliseconds(20));
  cluster_.Report(a);  // Nothing more has come back.
  cluster_.Pump();
  const std::vector<Event> restored = Of(EventKind::kRestored);
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(restored[0].job, "a");
  EXPECT_EQ(restored[0].bytes, MiB(32));
  EXPECT_EQ(restored[0].count, 1);
}

TEST_F(EventsTest, AWaitIsSaidWhileItLastsAndWhenItIsOver) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  const BufferId buffer = cluster_.AllocPinned(a, MiB(60));
  cluster_.Alloc(b, MiB(16));
  cluster_.Advance(absl::Milliseconds(900));
  EXPECT_TRUE(Of(EventKind::kWaits).empty());
  cluster_.Advance(absl::Seconds(3));
  const std::vector<Event> waits = Of(EventKind::kWaits);
  ASSERT_EQ(waits.size(), 1u);  // Once.
  EXPECT_EQ(waits[0].job, "b");
  EXPECT_THAT(waits[0].text, HasSubstr("pinned, held or fixed"));
  cluster_.Pin(a, buffer, false);
  cluster_.Free(a, buffer, false);
  cluster_.Advance(absl::Milliseconds(50));
  const std::vector<Event> granted = Of(EventKind::kGranted);
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].bytes, MiB(16));
  EXPECT_GE(granted[0].took, absl::Milliseconds(3900));
}

TEST_F(EventsTest, ADenialHasTheTextThatTheJobGets) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Alloc(a, MiB(100));
  cluster_.Pump();
  const std::vector<Event> denied = Of(EventKind::kDenied);
  ASSERT_EQ(denied.size(), 1u);
  ASSERT_EQ(a.denials.size(), 1u);
  EXPECT_EQ(denied[0].text, a.denials[0].reason);
}

TEST_F(EventsTest, StepsAreCountedFromOneReportToTheNext) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Pump();
  StepProgress progress;
  progress.session = a.id;
  progress.device = "host0";
  progress.signature = 7;
  progress.steps = 3;
  progress.duration = absl::Milliseconds(200);
  cluster_.Send(a, progress);
  cluster_.Pump();
  cluster_.Advance(absl::Seconds(1));
  progress.steps = 8;
  progress.since_begin = absl::Milliseconds(50);
  cluster_.Send(a, progress);
  cluster_.Send(a, progress);  // No step since.
  cluster_.Pump();
  const std::vector<Event> steps = Of(EventKind::kStepped);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].count, 5);
  EXPECT_EQ(steps[1].took, absl::Milliseconds(200));
  EXPECT_EQ(steps[1].time, cluster_.now() - absl::Milliseconds(50));
}

TEST_F(EventsTest, JobsComeAndGo) {
  FakeSession& a = cluster_.Open("a");
  cluster_.Pump();
  EXPECT_EQ(Of(EventKind::kAttached).size(), 1u);
  cluster_.Kill(a);
  cluster_.Pump();
  ASSERT_EQ(Of(EventKind::kEnded).size(), 1u);
  EXPECT_EQ(EventText(Of(EventKind::kEnded)[0]), "a process of 'a' has ended");
}

TEST_F(EventsTest, AnOrderWithoutAnAnswerIsSaidAndItsAnswerToo) {
  FakeSession& a = cluster_.Open("a");
  FakeSession& b = cluster_.Open("b");
  cluster_.Alloc(a, MiB(48));
  cluster_.Pump();
  cluster_.Report(a);
  cluster_.Pump();
  a.silent = true;
  cluster_.Alloc(b, MiB(32));
  cluster_.Advance(absl::Seconds(6));
  ASSERT_EQ(Of(EventKind::kUnresponsive).size(), 1u);
  EXPECT_EQ(Of(EventKind::kUnresponsive)[0].job, "a");
  a.silent = false;
  cluster_.Advance(absl::Seconds(1));
  EXPECT_EQ(Of(EventKind::kResponds).size(), 1u);
}

TEST(EventsOffTest, NothingIsKeptWhereNobodyAsks) {
  FakeCluster cluster(FakeCluster::Config(MiB(64), MiB(64)));
  cluster.Alloc(cluster.Open("a"), MiB(100));
  cluster.Pump();
  EXPECT_TRUE(cluster.events.empty());
}

TEST(EventTextTest, AnEvictionSaysWhenItsBuffersAreNeededAgain) {
  Event event;
  event.kind = EventKind::kEvicted;
  event.job = "bert";
  event.for_job = "resnet";
  event.bytes = event.copied = MiB(1229);
  event.count = 37;
  event.took = absl::Milliseconds(23);
  event.next_use = absl::Milliseconds(4100);
  EXPECT_EQ(EventText(event),
            "evicted 1.2 GiB in 37 buffers of 'bert', next use in 4.1 s, for "
            "'resnet': 23 ms");
  event.copied = Bytes();
  event.cause = EvictCause::kTurn;
  EXPECT_EQ(EventText(event),
            "evicted 1.2 GiB in 37 buffers of 'bert' without a copy, next use "
            "in 4.1 s, for the turn of 'resnet': 23 ms");
}

}  // namespace
}  // namespace mets::core
