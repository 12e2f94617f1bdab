#include "daemon/core/sessions/buffer_table.h"

#include <gtest/gtest.h>

namespace mets::core {
namespace {

TEST(BufferTableTest, SumsFollowStateAndMobility) {
  BufferTable table;
  Buffer& buffer = table.FindOrAdd(BufferId(1), MiB(4));
  table.FindOrAdd(BufferId(2), MiB(1));
  table.Set(buffer, BufferState::kResident, Mobility::kHeld);
  EXPECT_EQ(table.held(), MiB(4));
  table.Set(buffer, BufferState::kSwapped, Mobility::kMovable);
  EXPECT_EQ(table.held(), Bytes());
  EXPECT_EQ(table.swapped(), MiB(4));
  table.Erase(BufferId(1));
  EXPECT_EQ(table.swapped(), Bytes());
  EXPECT_EQ(table.size(), 1u);
}

TEST(BufferTableTest, OnlyMovableUnpinnedResidentBuffersCanLeave) {
  BufferTable table;
  Buffer& buffer = table.FindOrAdd(BufferId(1), MiB(4));
  EXPECT_TRUE(buffer.CanLeave());
  buffer.pinned = true;
  EXPECT_FALSE(buffer.CanLeave());
  buffer.pinned = false;
  table.Set(buffer, BufferState::kResident, Mobility::kFixed);
  EXPECT_FALSE(buffer.CanLeave());
  EXPECT_FALSE(buffer.CanLeaveAtGate());
  table.Set(buffer, BufferState::kResident, Mobility::kHeld);
  EXPECT_FALSE(buffer.CanLeave());
  EXPECT_TRUE(buffer.CanLeaveAtGate());
  table.Set(buffer, BufferState::kSwapped, Mobility::kMovable);
  EXPECT_FALSE(buffer.CanLeave());
}

}  // namespace
}  // namespace mets::core
