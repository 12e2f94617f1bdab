#include "daemon/transport/sessions/from_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>

#include "common/ipc/descriptor_channel.h"

namespace mets::transport {
namespace {

using ::testing::HasSubstr;

constexpr SessionId kSession(5);
constexpr Epoch kEpoch(9);
constexpr uint64_t kAbsurd = std::numeric_limits<uint64_t>::max();

absl::StatusOr<std::optional<core::Input>> Take(
    const v1::ClientMessage& message) {
  return FromClient(message, kSession, kEpoch);
}

v1::Hello GoodHello() {
  v1::Hello hello;
  hello.set_token(std::string(ipc::kTokenSize, 't'));
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job("bert");
  return hello;
}

TEST(FromClientTest, GoodHelloPasses) {
  EXPECT_TRUE(CheckHello(GoodHello()).ok());
}

TEST(FromClientTest, OtherVersionIsRefusedWithBothVersions) {
  v1::Hello hello = GoodHello();
  hello.set_protocol_version(7);
  const absl::Status status = CheckHello(hello);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 7"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 1"));
}

TEST(FromClientTest, BadJobNameIsRefused) {
  v1::Hello hello = GoodHello();
  hello.set_job("a/b");
  const absl::Status status = CheckHello(hello);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a/b"));
}

TEST(FromClientTest, SharesKeepTheirFields) {
  v1::ClientMessage message;
  v1::PublishShare& publish = *message.mutable_publish_share();
  publish.set_request_id(3);
  publish.set_device("host0");
  publish.set_name("weights");
  publish.set_checksum("c1");
  publish.set_bytes(4096);
  publish.add_chunk_ids(7);
  const auto published = Take(message);
  ASSERT_TRUE(published.ok() && published->has_value());
  const auto& input = std::get<core::PublishShare>(**published);
  EXPECT_EQ(input.session, kSession);
  EXPECT_EQ(input.request, RequestId(3));
  EXPECT_EQ(input.name, "weights");
  EXPECT_EQ(input.checksum, "c1");
  EXPECT_EQ(input.bytes, Bytes(4096));
  EXPECT_EQ(input.chunks, std::vector<ChunkId>{ChunkId(7)});
  message.mutable_detach_share()->set_share_id(5);
  message.mutable_detach_share()->set_epoch(8);
  const auto detached = Take(message);
  ASSERT_TRUE(detached.ok() && detached->has_value());
  EXPECT_EQ(std::get<core::DetachShare>(**detached).share, ShareId(5));
  EXPECT_EQ(std::get<core::DetachShare>(**detached).epoch, Epoch(8));
}

TEST(FromClientTest, AbsurdSharesAreRefused) {
  v1::ClientMessage message;
  message.mutable_publish_share()->set_bytes(kAbsurd);
  EXPECT_TRUE(absl::IsInvalidArgument(Take(message).status()));
  message.mutable_attach_share()->set_bytes(kAbsurd);
  EXPECT_TRUE(absl::IsInvalidArgument(Take(message).status()));
  message.mutable_snapshot()->add_shares()->set_size_bytes(kAbsurd);
  EXPECT_TRUE(absl::IsInvalidArgument(Take(message).status()));
  message.mutable_snapshot()->clear_shares();
  message.mutable_snapshot()->add_publishing_chunk_ids(1);
  message.mutable_snapshot()->set_epoch(kEpoch.value() + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(Take(message).status()));
}

TEST(FromClientTest, ShortTokenIsUnauthenticated) {
  v1::Hello hello = GoodHello();
  hello.set_token("short");
  EXPECT_TRUE(absl::IsUnauthenticated(CheckHello(hello)));
}

TEST(FromClientTest, AbsurdWishesAreRefused) {
  v1::Hello hello = GoodHello();
  hello.set_limit_bytes(kAbsurd);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckHello(hello)));
  hello = GoodHello();
  hello.set_guarantee_bytes(kAbsurd);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckHello(hello)));
}

TEST(FromClientTest, AcquireIsConverted) {
  v1::ClientMessage message;
  v1::Acquire& acquire = *message.mutable_acquire();
  acquire.set_request_id(3);
  acquire.set_device("host0");
  acquire.add_range_bytes(100);
  acquire.add_range_bytes(200);
  acquire.set_deadline_ms(1500);
  acquire.set_overdraft(true);
  acquire.set_op(7);
  acquire.set_fewest_chunks(true);
  const auto input = Take(message);
  ASSERT_TRUE(input.ok() && input->has_value());
  const auto& got = std::get<core::Acquire>(**input);
  EXPECT_EQ(got.session, kSession);
  EXPECT_EQ(got.request, RequestId(3));
  EXPECT_EQ(got.device, "host0");
  ASSERT_EQ(got.ranges.size(), 2u);
  EXPECT_EQ(got.ranges[1], Bytes(200));
  EXPECT_EQ(got.wait, absl::Milliseconds(1500));
  EXPECT_TRUE(got.overdraft);
  EXPECT_EQ(got.op, 7u);
  EXPECT_TRUE(got.fewest_chunks);
}

TEST(FromClientTest, LargestDeadlineIsForever) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_deadline_ms(
      std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(std::get<core::Acquire>(**Take(message)).wait,
            absl::InfiniteDuration());
}

TEST(FromClientTest, AbsurdAmountsAreRefusedByField) {
  v1::ClientMessage acquire;
  acquire.mutable_acquire()->add_range_bytes(kAbsurd);
  v1::ClientMessage release;
  release.mutable_release()->set_orphan_bytes(kAbsurd);
  v1::ClientMessage changes;
  changes.mutable_buffer_changes()->set_cached_bytes(kAbsurd);
  v1::ClientMessage totals;
  totals.mutable_buffer_changes()->mutable_totals()->set_restores(kAbsurd);
  v1::ClientMessage stall;
  stall.mutable_buffer_changes()->mutable_totals()->set_restore_stall_us(
      kAbsurd);
  v1::ClientMessage snapshot;
  snapshot.mutable_snapshot()->set_orphan_swap_bytes(kAbsurd);
  const std::pair<v1::ClientMessage, std::string> cases[] = {
      {acquire, "acquire.range_bytes"},
      {release, "release.orphan_bytes"},
      {changes, "buffer_changes.cached_bytes"},
      {totals, "totals.restores"},
      {stall, "totals.restore_stall_us"},
      {snapshot, "snapshot.orphan_swap_bytes"}};
  for (const auto& [message, field] : cases) {
    const auto input = Take(message);
    EXPECT_TRUE(absl::IsInvalidArgument(input.status())) << field;
    EXPECT_THAT(std::string(input.status().message()), HasSubstr(field));
  }
}

TEST(FromClientTest, BuffersNeedStateMobilityAndId) {
  v1::BufferReport good;
  good.set_buffer_id(1);
  good.set_state(v1::BUFFER_STATE_SWAPPED);
  good.set_mobility(v1::MOBILITY_HELD);
  good.set_idle_ms(250);
  const auto take = [](const v1::BufferReport& report) {
    v1::ClientMessage message;
    *message.mutable_buffer_changes()->add_buffers() = report;
    return Take(message);
  };
  const auto input = take(good);
  ASSERT_TRUE(input.ok());
  const auto& buffer = std::get<core::BufferChanges>(**input).buffers[0];
  EXPECT_EQ(buffer.state, core::BufferState::kSwapped);
  EXPECT_EQ(buffer.mobility, core::Mobility::kHeld);
  EXPECT_EQ(buffer.idle, absl::Milliseconds(250));
  v1::BufferReport bad = good;
  bad.clear_state();
  EXPECT_FALSE(take(bad).ok());
  bad = good;
  bad.clear_mobility();
  EXPECT_FALSE(take(bad).ok());
  bad = good;
  bad.clear_buffer_id();
  EXPECT_FALSE(take(bad).ok());
}

TEST(FromClientTest, AnswersToOrdersOfAnotherEpochAreIgnored) {
  v1::ClientMessage done;
  done.mutable_order_done()->set_epoch(kEpoch.value() - 1);
  v1::ClientMessage forgotten;
  forgotten.mutable_forgotten()->set_epoch(kEpoch.value() + 1);
  for (const v1::ClientMessage& message : {done, forgotten}) {
    const auto input = Take(message);
    ASSERT_TRUE(input.ok());
    EXPECT_FALSE(input->has_value());
  }
}

TEST(FromClientTest, StepNeedsAndTurnsBecomeInputs) {
  v1::ClientMessage need;
  need.mutable_step_need()->set_device("host0");
  need.mutable_step_need()->set_peak_bytes(100);
  need.mutable_step_need()->set_persistent_bytes(10);
  need.mutable_step_need()->set_step_us(2500);
  const auto n = Take(need);
  ASSERT_TRUE(n.ok() && n->has_value());
  EXPECT_EQ(std::get<core::StepNeed>(**n).peak, Bytes(100));
  EXPECT_EQ(std::get<core::StepNeed>(**n).persistent, Bytes(10));
  EXPECT_EQ(std::get<core::StepNeed>(**n).step, absl::Microseconds(2500));
  need.mutable_step_need()->set_step_us(~uint64_t{0});
  EXPECT_TRUE(absl::IsInvalidArgument(Take(need).status()));

  v1::ClientMessage ended;
  ended.mutable_turn_ended()->set_order_id(5);
  ended.mutable_turn_ended()->set_epoch(kEpoch.value());
  ended.mutable_turn_ended()->set_computed_us(7);
  ended.mutable_turn_ended()->set_stalled_us(3);
  const auto e = Take(ended);
  ASSERT_TRUE(e.ok() && e->has_value());
  EXPECT_EQ(std::get<core::TurnEnded>(**e).order, OrderId(5));
  EXPECT_EQ(std::get<core::TurnEnded>(**e).computed, absl::Microseconds(7));
  EXPECT_EQ(std::get<core::TurnEnded>(**e).stalled, absl::Microseconds(3));
  ended.mutable_turn_ended()->set_stalled_us(~uint64_t{0});
  EXPECT_TRUE(absl::IsInvalidArgument(Take(ended).status()));
  ended.mutable_turn_ended()->set_epoch(kEpoch.value() + 1);
  EXPECT_FALSE(Take(ended)->has_value());
  v1::ClientMessage wanted;
  wanted.mutable_turn_wanted()->set_epoch(kEpoch.value() + 1);
  EXPECT_FALSE(Take(wanted)->has_value());
}

TEST(FromClientTest, SnapshotChunksMustBeOfThisEpoch) {
  v1::ClientMessage message;
  message.mutable_snapshot()->add_chunk_ids(1);
  message.mutable_snapshot()->set_epoch(kEpoch.value() - 1);
  EXPECT_TRUE(absl::IsInvalidArgument(Take(message).status()));
  message.mutable_snapshot()->set_epoch(kEpoch.value());
  EXPECT_TRUE(Take(message).ok());
}

TEST(FromClientTest, EmptyMessageAndSecondHelloAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(Take({}).status()));
  v1::ClientMessage hello;
  *hello.mutable_hello() = GoodHello();
  EXPECT_TRUE(absl::IsInvalidArgument(Take(hello).status()));
}

TEST(FromClientTest, MessagesForLaterPartsNeedNoInput) {
  v1::ClientMessage progress;
  progress.mutable_progress()->set_order_id(1);
  const auto input = Take(progress);
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->has_value());
}

}  // namespace
}  // namespace mets::transport
