#include "daemon/transport/sessions/step_from_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>

namespace mets::transport {
namespace {

using ::testing::HasSubstr;

constexpr SessionId kSender(5);
constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

v1::StepProgram Program() {
  v1::StepProgram program;
  program.set_device("host0");
  program.set_step_signature(kMost);  // Any 64 bits.
  program.set_duration_us(2000);
  program.set_first(true);
  program.add_buffer_bytes(100);
  program.add_persistent(true);
  program.add_buffer_bytes(200);
  program.add_persistent(false);
  v1::StepOp* op = program.add_ops();
  op->set_start_us(10);
  op->set_busy_us(20);
  op->add_accesses(0);          // Reads buffer 0.
  op->add_accesses(1);          // Writes it.
  op->add_accesses(1 * 4 + 2);  // Allocates buffer 1.
  op->add_accesses(0 * 4 + 3);  // Uses what buffer 0 was before.
  op->add_frees(1);
  return program;
}

TEST(StepFromClientTest, ProgramBecomesAnInput) {
  const auto input = StepFromClient(Program(), kSender);
  ASSERT_TRUE(input.ok() && input->has_value()) << input.status();
  const core::StepSeen& seen = std::get<core::StepSeen>(**input);
  EXPECT_EQ(seen.session, kSender);
  EXPECT_EQ(seen.device, "host0");
  EXPECT_TRUE(seen.first);
  EXPECT_FALSE(seen.last);
  EXPECT_EQ(seen.part.signature, kMost);
  EXPECT_EQ(seen.part.duration, absl::Milliseconds(2));
  ASSERT_EQ(seen.part.buffers.size(), 2u);
  EXPECT_EQ(seen.part.buffers[1].size, Bytes(200));
  EXPECT_TRUE(seen.part.buffers[0].persistent);
  EXPECT_FALSE(seen.part.buffers[1].persistent);
  ASSERT_EQ(seen.part.ops.size(), 1u);
  const steps::StepOp& op = seen.part.ops[0];
  EXPECT_EQ(op.start, absl::Microseconds(10));
  EXPECT_EQ(op.busy, absl::Microseconds(20));
  ASSERT_EQ(op.accesses.size(), 4u);
  EXPECT_EQ(op.accesses[0].kind, steps::AccessKind::kRead);
  EXPECT_EQ(op.accesses[1].kind, steps::AccessKind::kWrite);
  EXPECT_EQ(op.accesses[2].kind, steps::AccessKind::kNew);
  EXPECT_EQ(op.accesses[2].buffer, 1u);
  EXPECT_EQ(op.accesses[3].kind, steps::AccessKind::kReplaced);
  EXPECT_EQ(op.accesses[3].buffer, 0u);
  EXPECT_THAT(op.frees, testing::ElementsAre(1u));
}

TEST(StepFromClientTest, WhatHasNoMeaningIsNamed) {
  const auto text = [](const v1::StepProgram& program) {
    return std::string(StepFromClient(program, kSender).status().message());
  };
  v1::StepProgram program = Program();
  program.add_buffer_bytes(5);
  EXPECT_THAT(text(program), HasSubstr("3 buffer_bytes and 2 persistent"));
  program = Program();
  program.set_buffer_bytes(0, kMost);
  EXPECT_THAT(text(program), HasSubstr("buffer_bytes"));
  program = Program();
  program.set_duration_us(kMost);
  EXPECT_THAT(text(program), HasSubstr("duration_us"));
  program = Program();
  program.mutable_ops(0)->set_start_us(kMost);
  EXPECT_THAT(text(program), HasSubstr("start_us"));
  program = Program();
  program.set_device(std::string(300, 'x'));
  EXPECT_THAT(text(program), HasSubstr("300 bytes"));
}

TEST(StepFromClientTest, DigestBecomesAnInput) {
  v1::StepDigest digest;
  digest.set_device("host0");
  digest.set_step_signature(7);
  digest.set_steps(100);
  digest.set_duration_us(5000);
  digest.set_since_begin_us(1000);
  const auto input = StepFromClient(digest, kSender);
  ASSERT_TRUE(input.ok() && input->has_value()) << input.status();
  const core::StepProgress& progress = std::get<core::StepProgress>(**input);
  EXPECT_EQ(progress.session, kSender);
  EXPECT_EQ(progress.signature, 7u);
  EXPECT_EQ(progress.steps, 100);
  EXPECT_EQ(progress.duration, absl::Milliseconds(5));
  EXPECT_EQ(progress.since_begin, absl::Milliseconds(1));
  digest.set_steps(kMost);
  EXPECT_TRUE(
      absl::IsInvalidArgument(StepFromClient(digest, kSender).status()));
}

}  // namespace
}  // namespace mets::transport
