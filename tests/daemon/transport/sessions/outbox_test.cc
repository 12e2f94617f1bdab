#include "daemon/transport/sessions/outbox.h"

#include <gtest/gtest.h>

namespace mets::transport {
namespace {

v1::DaemonMessage Limits(const std::string& device, uint64_t limit) {
  v1::DaemonMessage message;
  message.mutable_set_limits()->set_device(device);
  message.mutable_set_limits()->set_limit_bytes(limit);
  return message;
}

v1::DaemonMessage Notice(const std::string& text) {
  v1::DaemonMessage message;
  message.mutable_notice()->set_text(text);
  return message;
}

TEST(OutboxTest, KeepsTheOrder) {
  Outbox outbox(10);
  for (const char* text : {"a", "b", "c"})
    ASSERT_TRUE(outbox.Push(Notice(text)));
  for (const char* text : {"a", "b", "c"}) {
    EXPECT_EQ(outbox.Pop().notice().text(), text);
  }
  EXPECT_TRUE(outbox.empty());
}

TEST(OutboxTest, NewestLimitsOfADeviceReplaceOlderOnes) {
  Outbox outbox(10);
  outbox.Push(Limits("host0", 1));
  outbox.Push(Limits("host1", 2));
  outbox.Push(Limits("host0", 3));
  ASSERT_EQ(outbox.size(), 2u);
  EXPECT_EQ(outbox.Pop().set_limits().limit_bytes(), 3u);
  EXPECT_EQ(outbox.Pop().set_limits().limit_bytes(), 2u);
}

TEST(OutboxTest, NewestGateAndPlanReplaceOlderOnes) {
  Outbox outbox(10);
  for (uint64_t order : {1, 2}) {
    v1::DaemonMessage gate;
    gate.mutable_gate()->set_order_id(order);
    outbox.Push(gate);
    v1::DaemonMessage plan;
    plan.mutable_plan()->set_order_id(order);
    outbox.Push(plan);
  }
  ASSERT_EQ(outbox.size(), 2u);
  EXPECT_EQ(outbox.Pop().gate().order_id(), 2u);
  EXPECT_EQ(outbox.Pop().plan().order_id(), 2u);
}

TEST(OutboxTest, FullQueueTakesOnlyReplacements) {
  Outbox outbox(2);
  EXPECT_TRUE(outbox.Push(Limits("host0", 1)));
  EXPECT_TRUE(outbox.Push(Notice("a")));
  EXPECT_FALSE(outbox.Push(Notice("b")));
  EXPECT_TRUE(outbox.Push(Limits("host0", 2)));
  EXPECT_EQ(outbox.size(), 2u);
}

}  // namespace
}  // namespace mets::transport
