#include "daemon/sim/sim_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "tests/daemon/sim/training_program.h"

namespace mets::sim {
namespace {

using steps::AccessKind;

// A client whose requests are granted, until no more are to be.
class SimClientTest : public ::testing::Test {
 protected:
  void Run(const JobProgram& program, double until) {
    client_ = std::make_unique<SimClient>(
        &world_, &machine_, program, SessionId(1), "device0",
        [this](core::Input input) { Take(std::move(input)); });
    client_->Start();
    RunUntil(until);
  }

  void RunUntil(double time) {
    bool reached = false;
    world_.At(time, [&reached] { reached = true; });
    while (!reached) world_.RunNext();
  }

  void Take(core::Input input) {
    sent_.push_back({world_.now(), input});
    const auto* acquire = std::get_if<core::Acquire>(&input);
    if (acquire == nullptr || !grants_) return;
    core::Grant grant;
    grant.session = SessionId(1);
    grant.request = acquire->request;
    for (Bytes range : acquire->ranges) {
      grant.chunks.push_back({ChunkId(++last_chunk_), range});
      grant.range_chunks.push_back(1);
    }
    world_.After(0, [this, grant] { client_->Take(grant); });
  }

  void Evict(int order, Bytes target, const std::vector<uint32_t>& buffers) {
    core::EvictOrder evict;
    evict.session = SessionId(1);
    evict.order = OrderId(order);
    evict.target = target;
    for (uint32_t buffer : buffers) {
      auto& candidate = evict.candidates.emplace_back();
      candidate.buffer = BufferId(buffer + 1);
      candidate.slot.id = SlotId(buffer + 1);
    }
    client_->Take(evict);
  }

  template <typename Message>
  std::vector<std::pair<double, Message>> Sent() const {
    std::vector<std::pair<double, Message>> messages;
    for (const auto& [time, input] : sent_) {
      const auto* message = std::get_if<Message>(&input);
      if (message != nullptr) messages.push_back({time, *message});
    }
    return messages;
  }

  World world_;
  Machine machine_{&world_, MachineCosts()};
  std::unique_ptr<SimClient> client_;
  std::vector<std::pair<double, core::Input>> sent_;
  bool grants_ = true;
  uint64_t last_chunk_ = 0;
};

// Buffers 0 and 1; an op waits for memory that reads 0.
JobProgram WaitingProgram() {
  JobProgram program;
  program.buffers.assign(3, MiB(4));
  program.ops.resize(3);
  program.ops[0] = {0, 1e-3, 1, {{0, AccessKind::kNew}}, {}};
  program.ops[1] = {0, 1e-3, 2, {{1, AccessKind::kNew}}, {}};
  program.ops[2] = {
      1e-2, 1e-3, 3, {{0, AccessKind::kRead}, {2, AccessKind::kNew}}, {}};
  return program;
}

TEST_F(SimClientTest, WhatAWaitingOpHasNamedLeavesLast) {
  const JobProgram program = WaitingProgram();
  Run(program, 5e-3);
  grants_ = false;
  RunUntil(0.1);
  Evict(1, MiB(4), {0, 1});
  RunUntil(0.2);
  const auto done = Sent<core::OrderDone>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].second.results[0].outcome, core::Outcome::kSkipped);
  EXPECT_EQ(done[0].second.results[1].outcome, core::Outcome::kDone);
  Evict(2, MiB(4), {0});
  RunUntil(0.3);
  EXPECT_EQ(Sent<core::OrderDone>()[1].second.results[0].outcome,
            core::Outcome::kDone);
}

TEST_F(SimClientTest, OrdersAreFollowedOneAfterTheOther) {
  const JobProgram program = WaitingProgram();
  Run(program, 5e-3);
  Evict(1, MiB(4), {1});
  core::TrimOrder trim;
  trim.order = OrderId(2);
  client_->Take(trim);
  EXPECT_TRUE(Sent<core::OrderDone>().empty());
  RunUntil(0.1);
  const auto done = Sent<core::OrderDone>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].second.order, OrderId(1));
  EXPECT_EQ(done[1].second.order, OrderId(2));
}

// As a client, which looks every 20 ms, and measures what a step needs from one
// of its beginnings to the next.
// Buffers 0 to 2, and an op that lasts and needs none of the first two.
JobProgram BusyProgram() {
  JobProgram program;
  program.buffers = {MiB(4), MiB(8), MiB(4)};
  program.ops.resize(4);
  for (uint32_t b = 0; b < 3; ++b) {
    program.ops[b] = {0, 1e-3, b + 1, {{b, AccessKind::kNew}}, {}};
  }
  program.ops[3] = {0, 10, 4, {{2, AccessKind::kRead}}, {}};
  return program;
}

class SimClientReturnTest : public SimClientTest {
 protected:
  // Buffers 0 and 1 have left.
  SimClientReturnTest() {
    Run(program_, 0.1);
    Evict(1, MiB(12), {1, 0});
    RunUntil(0.2);
    sent_.clear();
  }
  void Open(core::GateMoment moment) {
    core::GateOrder open;
    open.session = SessionId(1);
    open.moment = moment;
    open.idle = absl::Seconds(1);
    client_->Take(open);
    RunUntil(0.3);
  }
  void Deny() {
    core::Deny deny;
    deny.session = SessionId(1);
    deny.request = Sent<core::Acquire>().back().second.request;
    client_->Take(deny);
  }

  const JobProgram program_ = BusyProgram();
};

TEST_F(SimClientReturnTest, AsAQuantumBeginsWhatHasLeftComesBack) {
  EXPECT_EQ(client_->resident(), MiB(4));
  Open(core::GateMoment::kNow);
  EXPECT_EQ(client_->resident(), MiB(16));
  EXPECT_EQ(client_->result().restored, MiB(12));
  const auto asked = Sent<core::Acquire>();
  ASSERT_EQ(asked.size(), 1u);
  // What was used first; nothing has to leave for it.
  EXPECT_EQ(asked[0].second.ranges, (std::vector<Bytes>{MiB(4), MiB(8)}));
  EXPECT_EQ(asked[0].second.wait, absl::ZeroDuration());
}

TEST_F(SimClientReturnTest, NothingComesBackForATurn) {
  Open(core::GateMoment::kStepEnd);
  EXPECT_EQ(client_->resident(), MiB(4));
}

TEST_F(SimClientReturnTest, WithoutMemoryItAsksAgainForATenthOfASecond) {
  grants_ = false;
  Open(core::GateMoment::kNow);
  size_t asked = 0;
  for (double now = 0.3; asked < Sent<core::Acquire>().size(); now += 0.01) {
    asked = Sent<core::Acquire>().size();
    Deny();
    RunUntil(now + 0.01);
  }
  EXPECT_GE(asked, 1u);
  EXPECT_LE(asked, 13u);
  EXPECT_EQ(Sent<core::Acquire>().back().second.ranges.size(), 1u);
  EXPECT_EQ(client_->resident(), MiB(4));
}

TEST_F(SimClientTest, AStepIsToldSoonAndItsNeedAfterOneMore) {
  const JobProgram program = TrainingProgram(10, 5e-3);
  Run(program, 0.7);
  const auto steps = Sent<core::StepSeen>();
  const auto needs = Sent<core::StepNeed>();
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_GT(needs[0].first - steps[0].first, 0.05);  // Of the step's 0.08.
  EXPECT_EQ(needs[0].second.peak, kTrainingPeak);
  EXPECT_EQ(needs[0].second.persistent, kWeights * int64_t{kLayers});
}

}  // namespace
}  // namespace mets::sim
