#include "client/src/step_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/steps/step_content.h"

namespace mets::client {
namespace {

// A training with `layers` weights; each step allocates and frees as many
// activations. An op takes 1 ms.
struct Training {
  static constexpr int kSizes = 6500;

  explicit Training(int layers, bool starts = true) : layers(layers) {
    if (starts) watch.Start([](StepWatch::AddLive) {});
    for (int i = 0; i < layers; ++i) {
      weights.push_back(++last_buffer);
      watch.Alloc(last_buffer, MiB(1 + i % kSizes), nullptr);
    }
  }

  void Op(const std::vector<steps::Touch>& touches, Bytes allocates,
          uint64_t kind = 0) {
    StepWatch::Op op;
    ++ops;
    boundaries +=
        watch.Begin(now, kind, touches.data(), touches.size(), tight, &op);
    now += absl::Milliseconds(1);
    if (work.has_value() && op.timed) {
      ++timed;
      op.work_begins = std::make_shared<absl::Duration>(device_time);
      op.work_ends = std::make_shared<absl::Duration>(device_time += *work);
    }
    if (!allocates.is_zero()) {
      activations.push_back(++last_buffer);
      watch.Alloc(last_buffer, allocates, &op);
    }
    watch.End(&op, now);
  }

  void Step() {
    for (int i = 0; i < layers; ++i)
      Op({{weights[i], false}}, MiB(50 + i % kSizes), kind);
    for (int i = layers - 1; i >= 0; --i) {
      Op({{activations.back(), false}, {weights[i], true}}, Bytes(), kind);
      watch.Free(activations.back());
      activations.pop_back();
    }
  }

  // Steps, and what is sent every 20 ms.
  std::vector<v1::ClientMessage> Run(int steps) {
    std::vector<v1::ClientMessage> sent;
    for (int i = 0; i < steps; ++i) {
      Step();
      for (v1::ClientMessage& message : watch.Report(now)) {
        sent.push_back(std::move(message));
      }
    }
    return sent;
  }

  const int layers;
  StepWatch watch{"gpu0", [](const TimeMark& from, const TimeMark& to) {
                    return *static_cast<absl::Duration*>(to.get()) -
                           *static_cast<absl::Duration*>(from.get());
                  }};
  uint64_t kind = 0;                   // Of the steps' ops.
  std::optional<absl::Duration> work;  // That an op launches.
  bool tight = true;
  int timed = 0;  // Ops whose work was.
  absl::Duration device_time;
  absl::Duration now = absl::Seconds(1);
  uint64_t last_buffer = 0;
  std::vector<uint64_t> weights, activations;
  int boundaries = 0;
  uint64_t ops = 0;
};

int CountPrograms(const std::vector<v1::ClientMessage>& messages) {
  int count = 0;
  for (const v1::ClientMessage& message : messages) {
    count += message.has_step_program() && message.step_program().first();
  }
  return count;
}

TEST(StepWatchTest, ProgramIsSentOnceAndThenOneSmallDigestASecond) {
  Training training(25);  // 50 ms a step.
  std::vector<v1::ClientMessage> sent = training.Run(40);
  ASSERT_EQ(CountPrograms(sent), 1);
  const v1::StepProgram program = sent[0].step_program();
  EXPECT_EQ(program.device(), "gpu0");
  EXPECT_TRUE(program.last());
  EXPECT_EQ(program.ops_size(), 50);
  EXPECT_EQ(program.buffer_bytes_size(), 50);
  EXPECT_EQ(program.duration_us(), 50000);
  sent = training.Run(200);  // 10 s.
  EXPECT_EQ(CountPrograms(sent), 0);
  EXPECT_GE(sent.size(), 9u);
  EXPECT_LE(sent.size(), 11u);
  size_t bytes = 0;
  for (const v1::ClientMessage& message : sent) {
    bytes += message.ByteSizeLong();
    EXPECT_EQ(message.step_digest().step_signature(), program.step_signature());
    EXPECT_EQ(message.step_digest().duration_us(), 50000);
  }
  EXPECT_LT(bytes, 10 * 1000u);
  EXPECT_GE(sent.back().step_digest().steps(), 215u);
  EXPECT_LE(sent.back().step_digest().steps(), 240u);
}

TEST(StepWatchTest, AnotherStepIsToldSoonAndWhatKeepsChangingSeldom) {
  Training training(5);  // 10 ms a step.
  ASSERT_EQ(CountPrograms(training.Run(110)), 1);
  training.kind = 1;
  EXPECT_EQ(CountPrograms(training.Run(10)), 1);
  int told = 0;
  for (training.kind = 2; training.kind < 52; ++training.kind) {
    told += CountPrograms(training.Run(20));
  }
  EXPECT_GE(told, 10);  // In 10 seconds.
  EXPECT_LE(told, 20);
}

TEST(StepWatchTest, ProgramHasTheTimesOfTheDevicesWork) {
  Training training(25);
  training.work = absl::Milliseconds(7);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  ASSERT_EQ(CountPrograms(sent), 1);
  EXPECT_EQ(sent[0].step_program().duration_us(), 50 * 7000);
}

TEST(StepWatchTest, WhereMemoryIsNotTightAStepIsTimedOnce) {
  Training training(25);
  training.work = absl::Milliseconds(7);
  training.tight = false;
  training.Run(60);
  EXPECT_EQ(training.timed, 50);
  training.tight = true;
  training.Run(4);
  EXPECT_NEAR(training.timed, 100, 1);
}

TEST(StepWatchTest, NamesTellOpsApartThatTouchTheSame) {
  constexpr int kOps = 40;
  Training training(1);
  for (int i = 0; i < 20 * kOps; ++i) {
    training.Op({{training.weights[0], false}}, Bytes(),
                steps::KindOf(absl::StrCat("Cell", i % kOps)));
  }
  const std::vector<v1::ClientMessage> sent =
      training.watch.Report(training.now);
  ASSERT_EQ(CountPrograms(sent), 1);
  EXPECT_EQ(sent[0].step_program().ops_size(), kOps);
}

TEST(StepWatchTest, NothingIsSentWithoutAStepOrWithoutOps) {
  Training training(25);
  EXPECT_TRUE(training.Run(1).empty());
  training.Run(40);
  training.now += absl::Seconds(2);
  training.watch.Report(training.now);
  training.now += absl::Seconds(100);
  EXPECT_TRUE(training.watch.Report(training.now).empty());
}

TEST(StepWatchTest, WhatLivesAtTheStartIsKnownAndWhatHasGoneIsNot) {
  Training training(25, /*starts=*/false);
  training.watch.Free(training.weights[24]);
  training.watch.Start([&](StepWatch::AddLive add) {
    for (int i = 0; i < 24; ++i) add(training.weights[i], MiB(1 + i));
  });
  // A thread that had allocated it comes late.
  training.watch.Alloc(training.weights[0], MiB(1), nullptr);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  ASSERT_EQ(CountPrograms(sent), 1);
  EXPECT_EQ(sent[0].step_program().buffer_bytes_size(), 24 + 25);
  for (int i = 0; i < 24; ++i) {
    const uint32_t logical = training.watch.LogicalOf(training.weights[i]);
    ASSERT_GT(logical, 0);
    EXPECT_EQ(sent[0].step_program().buffer_bytes(logical - 1),
              MiB(1 + i).count());
  }
  EXPECT_EQ(training.watch.LogicalOf(training.weights[24]), 0);
}

TEST(StepWatchTest, LogicalBuffersAreThoseOfTheProgramThatWasSent) {
  Training training(25);
  EXPECT_EQ(training.watch.LogicalOf(training.weights[3]), 0);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  const v1::StepProgram& program = sent[0].step_program();
  for (int i = 0; i < training.layers; ++i) {
    const uint32_t logical = training.watch.LogicalOf(training.weights[i]);
    ASSERT_GT(logical, 0);
    EXPECT_EQ(program.buffer_bytes(logical - 1), MiB(1 + i).count());
    EXPECT_TRUE(program.persistent(logical - 1));
  }
  const uint64_t version = training.watch.version();
  EXPECT_NE(version, 0);
  training.watch.Forget();
  EXPECT_EQ(training.watch.version(), 0);
  EXPECT_EQ(training.watch.LogicalOf(training.weights[3]), 0);
  EXPECT_EQ(CountPrograms(training.Run(2)), 1);
  EXPECT_EQ(training.watch.version(), version);
}

TEST(StepWatchTest, LargeProgramsComeInPartsBelowOneMebibyte) {
  Training training(20000);
  std::vector<v1::ClientMessage> sent = training.Run(7);
  ASSERT_EQ(CountPrograms(sent), 1);
  int ops = 0, buffers = 0, last = 0;
  for (const v1::ClientMessage& message : sent) {
    EXPECT_LT(message.ByteSizeLong(), 1u << 20);
    ops += message.step_program().ops_size();
    buffers += message.step_program().buffer_bytes_size();
    last += message.step_program().last();
  }
  EXPECT_EQ(ops, 40000);
  EXPECT_EQ(buffers, 40000);
  EXPECT_EQ(last, 1);
}

TEST(StepWatchTest, EndOfTheStepIsSaidOnce) {
  Training training(25);
  training.Run(40);
  std::vector<v1::ClientMessage> sent;
  for (int i = 0; i < 3000; ++i) {
    const Bytes size = MiB(1000 + i);
    const uint64_t buffer = ++training.last_buffer;
    training.watch.Alloc(buffer, size, nullptr);
    training.Op({{buffer, true}}, Bytes());
    training.watch.Free(buffer);
    for (v1::ClientMessage& message : training.watch.Report(training.now)) {
      sent.push_back(std::move(message));
    }
  }
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.back().step_digest().step_signature(), 0);
  EXPECT_LE(sent.size(), 2u);
}

// What a plan wants moved, and in or behind how many ops that was.
struct RecordingSink : PlanSink {
  explicit RecordingSink(const Training& training) : training(training) {}
  void Post(const BufferMoves& moves) override {
    for (const auto& leave : moves.leave) left.push_back({ops(), leave.buffer});
    for (uint64_t buffer : moves.back) back.push_back({ops(), buffer});
  }
  void Drop() override { ++drops; }
  uint64_t ops() const { return training.ops; }

  const Training& training;
  std::vector<std::pair<uint64_t, uint64_t>> left, back;
  int drops = 0;
};

// The logical buffer of a size that does not persist leaves behind the op that
// allocates it, and comes back `ahead` ops before its use.
v1::Plan PlanFor(const v1::StepProgram& program, Bytes size, uint32_t ahead) {
  v1::Plan plan;
  plan.set_step_signature(program.step_signature());
  uint32_t buffer = 0;
  while (program.persistent(buffer) ||
         program.buffer_bytes(buffer) != static_cast<uint64_t>(size.count())) {
    ++buffer;
  }
  std::vector<uint32_t> users;
  for (int op = 0; op < program.ops_size(); ++op) {
    for (uint32_t access : program.ops(op).accesses()) {
      if (access / 4 == buffer) users.push_back(op);
    }
  }
  v1::PlanAbsence* absence = plan.add_absences();
  absence->set_buffer(buffer);
  absence->set_evict_after(users[0]);
  absence->set_restore_at(users[1] - ahead);
  absence->set_use(users[1]);
  absence->set_returns(true);
  return plan;
}

TEST(StepWatchTest, BuffersOfAPlanMoveAtItsOps) {
  Training training(25);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  const v1::Plan plan = PlanFor(sent[0].step_program(), MiB(53), 6);
  RecordingSink sink(training);
  ASSERT_TRUE(training.watch.Follow(plan, &sink).ok());
  const uint64_t ops = training.ops, buffers = training.last_buffer;
  training.Run(3);
  ASSERT_EQ(sink.left.size(), 3u);
  ASSERT_EQ(sink.back.size(), 3u);
  for (int step = 0; step < 3; ++step) {
    // Activations 0 to 24 are used by ops 25 to 49 in reverse order; the first
    // op counts as one.
    EXPECT_EQ(sink.left[step].first, ops + step * 50 + 4);
    EXPECT_EQ(sink.left[step].second, buffers + step * 25 + 4);
    EXPECT_EQ(sink.back[step].first, ops + step * 50 + 50 - 3 - 6);
    EXPECT_EQ(sink.back[step].second, sink.left[step].second);
  }
  training.watch.Unfollow();
  training.Run(1);
  EXPECT_EQ(sink.left.size(), 3u);
  EXPECT_EQ(sink.drops, 0);
}

// Two buffers of one op, the old one and the new one, are one use.
TEST(StepWatchTest, ABufferThatIsReplacedLeavesAfterItsOp) {
  Training training(25);
  uint64_t variable = ++training.last_buffer;
  training.watch.Alloc(variable, MiB(90), nullptr);
  std::vector<v1::ClientMessage> sent;
  const auto step = [&] {
    training.Step();
    training.Op({{variable, false}}, MiB(90), 7);
    training.watch.Free(std::exchange(variable, training.activations.back()));
    training.activations.pop_back();
    training.Op({{variable, false}}, Bytes(), 8);
    for (v1::ClientMessage& message : training.watch.Report(training.now)) {
      sent.push_back(std::move(message));
    }
  };
  for (int i = 0; i < 40; ++i) step();
  const v1::StepProgram& program = sent[0].step_program();
  ASSERT_EQ(program.ops_size(), 52);
  v1::Plan plan;
  plan.set_step_signature(program.step_signature());
  v1::PlanAbsence* absence = plan.add_absences();
  uint32_t use = 52;  // The one that replaces it.
  for (int op = 0; op < program.ops_size(); ++op) {
    for (uint32_t access : program.ops(op).accesses()) {
      const uint32_t buffer = access / 4;
      if (program.buffer_bytes(buffer) !=
          static_cast<uint64_t>(MiB(90).count())) {
        continue;
      }
      absence->set_buffer(buffer);
      use = std::min<uint32_t>(use, op);
    }
  }
  ASSERT_LT(use, 51u);
  absence->set_evict_after(use + 1);
  absence->set_restore_at(use);
  absence->set_use(use);
  absence->set_returns(true);
  RecordingSink sink(training);
  ASSERT_TRUE(training.watch.Follow(plan, &sink).ok());
  step();  // A plan begins with a step.
  const uint64_t ops = training.ops;
  step();
  ASSERT_FALSE(sink.left.empty());
  EXPECT_EQ(sink.left.back(),
            (std::pair<uint64_t, uint64_t>(ops + 52, variable)));
}

// A step is recorded while memory is short: its work seemed to take longer.
TEST(StepWatchTest, FasterWorkIsToldAndThePlanGoesOn) {
  Training training(25);
  training.work = absl::Milliseconds(7);
  std::vector<v1::ClientMessage> sent;
  while (CountPrograms(sent) == 0) sent = training.Run(1);
  EXPECT_EQ(sent[0].step_program().duration_us(), 50 * 7000);
  RecordingSink sink(training);
  ASSERT_TRUE(
      training.watch.Follow(PlanFor(sent[0].step_program(), MiB(53), 6), &sink)
          .ok());
  training.work = absl::Microseconds(6500);  // Not worth saying.
  training.Run(2);
  training.work = absl::Milliseconds(3);
  sent = training.Run(40);
  ASSERT_EQ(CountPrograms(sent), 1);
  EXPECT_EQ(sent[0].step_program().duration_us(), 50 * 3000);
  EXPECT_EQ(sink.left.size(), 42u);
  EXPECT_EQ(sink.drops, 0);
}

TEST(StepWatchTest, APlanForAnotherStepIsRefused) {
  Training training(25);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  v1::Plan plan = PlanFor(sent[0].step_program(), MiB(53), 6);
  RecordingSink sink(training);
  training.watch.Forget();
  EXPECT_FALSE(training.watch.Follow(plan, &sink).ok());
  training.Run(1);
  plan.set_step_signature(plan.step_signature() + 1);
  EXPECT_FALSE(training.watch.Follow(plan, &sink).ok());
  training.Run(1);
  EXPECT_TRUE(sink.left.empty());
}

TEST(StepWatchTest, APlanRestsWhileItsStepDoesNotRepeat) {
  Training training(25);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  RecordingSink sink(training);
  ASSERT_TRUE(
      training.watch.Follow(PlanFor(sent[0].step_program(), MiB(53), 6), &sink)
          .ok());
  for (int i = 0; i < 3000; ++i) {
    const uint64_t buffer = ++training.last_buffer;
    training.watch.Alloc(buffer, MiB(1000 + i), nullptr);
    training.Op({{buffer, true}}, Bytes());
    training.watch.Free(buffer);
    if (i == 100) sink.left.clear();  // The step is lost by now.
  }
  EXPECT_TRUE(sink.left.empty());
  training.Run(40);
  EXPECT_FALSE(sink.left.empty());
  EXPECT_EQ(sink.drops, 0);
}

TEST(StepWatchTest, APlanEndsWhenAnotherStepIsTold) {
  Training training(25);
  const std::vector<v1::ClientMessage> sent = training.Run(40);
  RecordingSink sink(training);
  ASSERT_TRUE(
      training.watch.Follow(PlanFor(sent[0].step_program(), MiB(53), 6), &sink)
          .ok());
  training.watch.Forget();  // Its program is told anew.
  training.Run(40);
  EXPECT_EQ(sink.drops, 1);
}

TEST(StepWatchTest, BeginningsOfStepsAreSaid) {
  Training training(25);
  training.Run(40);
  training.boundaries = 0;
  training.Run(10);
  EXPECT_EQ(training.boundaries, 10);
}

}  // namespace
}  // namespace mets::client
