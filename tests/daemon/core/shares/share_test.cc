// Memory that several sessions have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShareTest : public testing::Test {
 protected:
  void Start(CoreConfig config) {
    cluster_ = std::make_unique<FakeCluster>(std::move(config));
  }
  void SetUp() override { Start(FakeCluster::Config(MiB(64), MiB(64))); }

  BufferId Alloc(FakeSession& s, Bytes size) {
    const BufferId id = cluster_->Alloc(s, size);
    cluster_->Pump();
    return id;
  }
  ShareAnswer Publish(FakeSession& s, BufferId buffer, const std::string& name,
                      const std::string& checksum = "") {
    cluster_->Publish(s, buffer, name, checksum);
    cluster_->Pump();
    return s.share_answers.empty() ? ShareAnswer() : s.share_answers.back();
  }
  ShareAnswer Attach(FakeSession& s, const std::string& name,
                     const std::string& checksum = "", Bytes bytes = Bytes()) {
    cluster_->AttachShare(s, name, checksum, bytes);
    cluster_->Pump();
    return s.share_answers.empty() ? ShareAnswer() : s.share_answers.back();
  }
  void Detach(FakeSession& s, const std::string& name) {
    cluster_->DetachShare(s, name);
    cluster_->Pump();
  }
  std::vector<ShareStatus> Shares() {
    return cluster_->core().GetStatus().shares;
  }

  std::unique_ptr<FakeCluster> cluster_;
};

TEST_F(ShareTest, IsCountedOnceAndSentWithItsDescriptors) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  const ShareAnswer published = Publish(a, Alloc(a, MiB(8)), "weights", "c1");
  EXPECT_EQ(published.outcome, ShareOutcome::kDone);
  EXPECT_TRUE(published.new_to_session.empty());
  const ShareAnswer attached = Attach(b, "weights", "c1", MiB(8));
  EXPECT_EQ(attached.outcome, ShareOutcome::kDone);
  EXPECT_EQ(attached.chunks.size(), attached.new_to_session.size());
  EXPECT_EQ(attached.checksum, "c1");
  EXPECT_EQ(attached.bytes, MiB(8));
  EXPECT_EQ(cluster_->device().resident, MiB(8));
  EXPECT_EQ(cluster_->device().shared, MiB(8));
  EXPECT_EQ(cluster_->job("a").resident, MiB(8));
  EXPECT_EQ(cluster_->job("b").resident, Bytes());
  ASSERT_EQ(Shares().size(), 1u);
  EXPECT_THAT(Shares()[0].jobs, ElementsAre("a", "b"));
  EXPECT_EQ(Shares()[0].payer, "a");
}

TEST_F(ShareTest, LivesUntilItsLastHolderLeavesAlsoWhenThePublisherIsKilled) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  Publish(a, Alloc(a, MiB(8)), "weights");
  Attach(b, "weights");
  cluster_->Kill(a);
  cluster_->Pump();
  EXPECT_EQ(cluster_->device().resident, MiB(8));
  EXPECT_EQ(cluster_->job("b").resident, MiB(8));
  FakeSession& c = cluster_->Open("c");
  EXPECT_EQ(Attach(c, "weights").outcome, ShareOutcome::kDone);
  Detach(b, "weights");
  EXPECT_EQ(cluster_->job("c").resident, MiB(8));
  Detach(c, "weights");
  EXPECT_EQ(cluster_->device().free, MiB(64));
  EXPECT_TRUE(Shares().empty());
  EXPECT_EQ(Attach(c, "weights").outcome, ShareOutcome::kUnknown);
}

TEST_F(ShareTest, NeverLeavesForOthersAndCountsAgainstThePayersLimit) {
  FakeSession& a = cluster_->Open("a", {1, MiB(16)});
  FakeSession& b = cluster_->Open("b");
  Publish(a, Alloc(a, MiB(8)), "weights");
  cluster_->Report(a);
  Alloc(b, MiB(56));
  EXPECT_EQ(cluster_->device().free, Bytes());
  cluster_->Alloc(b, MiB(8), absl::ZeroDuration());
  cluster_->Pump();
  EXPECT_EQ(a.evicted, 0);
  ASSERT_EQ(b.denials.size(), 1u);
  EXPECT_THAT(b.denials[0].reason, HasSubstr("8 MiB shared"));
  cluster_->Alloc(a, MiB(9), absl::ZeroDuration());
  cluster_->Pump();
  EXPECT_EQ(a.denials.size(), 1u);
}

// Two jobs that fit together no longer do so beside a share.
TEST_F(ShareTest, IsNotThereForTurns) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  for (FakeSession* s : {&a, &b}) {
    s->computes = true;
    Alloc(*s, MiB(4));
    cluster_->Report(*s);
    cluster_->Send(
        *s, StepNeed{s->id, "", MiB(30), MiB(4), absl::Milliseconds(50)});
  }
  cluster_->Advance(absl::Milliseconds(500));
  EXPECT_EQ(cluster_->device().mode, SharingMode::kFree);
  FakeSession& c = cluster_->Open("c");
  Publish(c, Alloc(c, MiB(16)), "weights");
  for (FakeSession* s : {&a, &b}) {
    cluster_->Touch(*s, s->buffers.begin()->first, true);
    cluster_->Report(*s);
  }
  cluster_->Advance(absl::Milliseconds(500));
  EXPECT_EQ(cluster_->device().mode, SharingMode::kTurns);
}

TEST_F(ShareTest, AnotherDomainSeesNothing) {
  FakeSession& a = cluster_->Open("a", {1});
  FakeSession& b = cluster_->Open("b", {2});
  Publish(a, Alloc(a, MiB(8)), "weights");
  const ShareAnswer stranger = Attach(b, "weights");
  EXPECT_EQ(stranger.outcome, ShareOutcome::kUnknown);
  EXPECT_THAT(stranger.reason, HasSubstr("same user"));
  EXPECT_EQ(Publish(b, Alloc(b, MiB(4)), "weights").outcome,
            ShareOutcome::kDone);
  EXPECT_EQ(Shares().size(), 2u);
}

TEST_F(ShareTest, ErrorsSayWhatIsThere) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  Publish(a, Alloc(a, MiB(8)), "weights", "c1");
  const ShareAnswer taken = Publish(b, Alloc(b, MiB(4)), "weights");
  EXPECT_EQ(taken.outcome, ShareOutcome::kExists);
  EXPECT_THAT(taken.reason, HasSubstr("'weights' exists"));
  EXPECT_EQ(Attach(a, "weights").outcome, ShareOutcome::kExists);
  const ShareAnswer checksum = Attach(b, "weights", "c2");
  EXPECT_EQ(checksum.outcome, ShareOutcome::kRefused);
  EXPECT_THAT(checksum.reason, HasSubstr("c1"));
  const ShareAnswer size = Attach(b, "weights", "c1", MiB(4));
  EXPECT_EQ(size.outcome, ShareOutcome::kRefused);
  EXPECT_THAT(size.reason, HasSubstr("8388608 bytes, not 4194304"));
  const ShareAnswer name = Publish(b, Alloc(b, MiB(4)), "no spaces");
  EXPECT_EQ(name.outcome, ShareOutcome::kBad);
  EXPECT_THAT(name.reason, HasSubstr("bad share name 'no spaces'"));
  EXPECT_EQ(Publish(b, Alloc(b, MiB(4)), "x", std::string(129, 'c')).outcome,
            ShareOutcome::kBad);
  EXPECT_FALSE(a.refused || b.refused);
}

TEST_F(ShareTest, ADomainHasOnlySoMany) {
  CoreConfig config = FakeCluster::Config(MiB(64), MiB(64));
  config.max_shares_per_domain = 2;
  Start(config);
  FakeSession& a = cluster_->Open("a", {1});
  FakeSession& b = cluster_->Open("b", {2});
  Publish(a, Alloc(a, MiB(1)), "one");
  Publish(a, Alloc(a, MiB(1)), "two");
  const ShareAnswer third = Publish(a, Alloc(a, MiB(1)), "three");
  EXPECT_EQ(third.outcome, ShareOutcome::kRefused);
  EXPECT_THAT(third.reason, HasSubstr("more than 2"));
  EXPECT_EQ(Publish(b, Alloc(b, MiB(1)), "one").outcome, ShareOutcome::kDone);
}

TEST_F(ShareTest, MemoryOfOthersIsNotPublished) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  const BufferId buffer = Alloc(a, MiB(4));
  const ChunkId chunk = a.buffers[buffer].chunks[0].id;
  cluster_->Send(
      b, PublishShare{b.id, RequestId(9), "", "mine", "", MiB(4), {chunk}});
  cluster_->Pump();
  EXPECT_TRUE(b.refused);
  EXPECT_THAT(b.refusal, HasSubstr("not its own"));
  cluster_->Send(
      a, PublishShare{
             a.id, RequestId(9), "", "twice", "", MiB(4), {chunk, chunk}});
  cluster_->Pump();
  EXPECT_TRUE(a.refused);
}

TEST_F(ShareTest, ALostAnswerIsGivenAgain) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  cluster_->Publish(a, Alloc(a, MiB(8)), "weights");
  EXPECT_TRUE(cluster_->DeliverToCore(a));
  cluster_->Lose(a);
  Attach(b, "weights");
  cluster_->Resume(a);
  cluster_->Pump();
  ASSERT_EQ(a.share_answers.size(), 1u);
  EXPECT_EQ(a.share_answers[0].outcome, ShareOutcome::kDone);
  EXPECT_EQ(cluster_->device().shared, MiB(8));
}

TEST_F(ShareTest, WhatIsAttachedWithoutTheAnswerIsGivenBack) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  Publish(a, Alloc(a, MiB(8)), "weights");
  cluster_->AttachShare(b, "weights");
  EXPECT_TRUE(cluster_->DeliverToCore(b));
  cluster_->Lose(b);
  EXPECT_EQ(Shares()[0].sessions, 2);
  cluster_->Resume(b);
  cluster_->Pump();
  EXPECT_EQ(Shares()[0].sessions, 1);
}

TEST_F(ShareTest, IsCountedOnceAlsoAfterARestart) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  Publish(a, Alloc(a, MiB(8)), "weights");
  Attach(b, "weights");
  cluster_->RestartCore(FakeCluster::Config(MiB(64), MiB(64)));
  cluster_->Return(b);
  cluster_->Pump();
  EXPECT_EQ(cluster_->job("b").resident, MiB(8));
  cluster_->Return(a);
  cluster_->Pump();
  EXPECT_EQ(cluster_->device().resident, MiB(8));
  EXPECT_EQ(cluster_->device().orphan, MiB(8));
  // It has no descriptors any more, and no name.
  FakeSession& c = cluster_->Open("c");
  EXPECT_EQ(Attach(c, "weights").outcome, ShareOutcome::kUnknown);
  EXPECT_EQ(Publish(c, Alloc(c, MiB(4)), "weights").outcome,
            ShareOutcome::kDone);
  cluster_->Kill(b);
  Detach(a, "weights");
  cluster_->Pump();
  EXPECT_EQ(cluster_->device().resident, MiB(4));
}

TEST_F(ShareTest, SharesOfEarlierDaemonsAreNoMoreThanThePool) {
  FakeSession& a = cluster_->Open("a");
  cluster_->Lose(a);
  a.shares["lie"] = {ShareId(7), Epoch(77), MiB(65), {}};
  cluster_->Resume(a);
  cluster_->Pump();
  EXPECT_TRUE(a.refused);
  EXPECT_THAT(a.refusal, HasSubstr("more than the pool"));
}

TEST_F(ShareTest, ShareOfThisDaemonMustBeHeldToBeClaimed) {
  FakeSession& a = cluster_->Open("a");
  FakeSession& b = cluster_->Open("b");
  const ShareAnswer published = Publish(a, Alloc(a, MiB(8)), "weights");
  cluster_->Lose(b);
  b.shares["weights"] = {published.share, Epoch(1), MiB(8), {}};
  cluster_->Resume(b);
  cluster_->Pump();
  EXPECT_THAT(b.refusal, HasSubstr("does not hold"));
}

}  // namespace
}  // namespace mets::core
