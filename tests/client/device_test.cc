#include "client/src/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "common/device/host/host_map_driver.h"
#include "tests/client/device_stats.h"
#include "tests/client/fake_uplink.h"

namespace mets::client {
namespace {

using testing::Each;

class DeviceTest : public testing::Test {
 protected:
  explicit DeviceTest(Bytes pool = MiB(64)) : uplink_(pool) {
    auto driver = HostMapDriver::Create(HostMapOptions{GiB(16)});
    METS_CHECK_OK(driver);
    auto device =
        Device::Create(uplink_, *std::move(driver),
                       {"host0", "host", pool, Bytes(), absl::Seconds(10)});
    METS_CHECK_OK(device);
    device_ = *std::move(device);
  }

  char* Alloc(Bytes bytes, mets_mobility mobility = METS_MOVABLE) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    options.mobility = mobility;
    void* address = nullptr;
    const absl::Status status = device_->Alloc(options, &address);
    EXPECT_TRUE(status.ok()) << status;
    return static_cast<char*>(address);
  }

  Op* Begin(std::vector<mets_access> accesses, uint64_t expected = 0) {
    Op* op = nullptr;
    const absl::Status status =
        device_->BeginOp(accesses.data(), accesses.size(), expected, &op);
    EXPECT_TRUE(status.ok()) << status;
    return op;
  }
  Op* Write(char* address) { return Begin({{address, 0, METS_WRITE}}); }
  Op* Read(char* address) { return Begin({{address, 0, METS_READ}}); }
  void End(Op* op) {
    if (op != nullptr) device_->EndOp(op);
  }

  mets_buffer_info Info(char* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    EXPECT_TRUE(device_->FindBuffer(address, &info).ok());
    return info;
  }
  mets_stats_t Stats() { return StatsOf(*device_); }

  // As one order of one candidate.
  v1::BufferOutcome Evict(char* address, v1::Slot* slot = nullptr) {
    const uint64_t id = Info(address).buffer_id;
    const Bytes bytes(static_cast<int64_t>(Info(address).bytes));
    v1::Slot fresh = uplink_.NewSlot(
        *device_, bytes < MiB(1) ? kSmallestSlab : bytes.RoundUpTo(KiB(64)));
    if (slot == nullptr) slot = &fresh;
    if (slot->slot_id() == 0) *slot = fresh;
    const Device::EvictResult result = device_->Evict(id, *slot, 1);
    v1::OrderDone done;
    v1::BufferResult* answer = done.add_results();
    answer->set_buffer_id(id);
    answer->set_outcome(result.outcome);
    answer->set_slot_id(slot->slot_id());
    device_->AnswerEvictions(std::move(done));
    return result.outcome;
  }

  FakeUplink uplink_;
  std::unique_ptr<Device> device_;
};

TEST_F(DeviceTest, AllocatesZeroedAlignedMemoryOfThePool) {
  char* a = Alloc(MiB(4));
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(device_->Owns(a));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 65536, 0u);
  EXPECT_EQ(a[0], 0);
  std::memset(a, 1, MiB(4).count());
  EXPECT_EQ(Info(a + 100).bytes, static_cast<uint64_t>(MiB(4).count()));
  EXPECT_EQ(uplink_.used(), MiB(4));
  device_->Free(a);
}

TEST_F(DeviceTest, FreedMemoryIsUsedAgainWithoutARequest) {
  char* a = Alloc(MiB(4));
  const uint64_t id = Info(a).buffer_id;
  device_->Free(a);
  const int acquires = uplink_.acquires();
  char* b = Alloc(MiB(4) - KiB(64));
  EXPECT_EQ(b, a);
  EXPECT_NE(Info(b).buffer_id, id);
  EXPECT_EQ(uplink_.acquires(), acquires);
  EXPECT_EQ(Stats().cache_hits_total, 1u);
}

TEST_F(DeviceTest, CountsWhatLivesAsTheProgramAsked) {
  char* large = Alloc(MiB(2) + Bytes(1));
  char* small = Alloc(Bytes(1000));  // The first of its slab.
  char* second = Alloc(Bytes(10));
  const uint64_t all = (MiB(2) + Bytes(1011)).count();
  EXPECT_EQ(Stats().live_bytes, all);
  EXPECT_EQ(Stats().allocations_total, 3u);
  device_->Free(small);
  EXPECT_EQ(Stats().live_bytes, all - 1000);
  Op* op = Begin({{large, 0, METS_READ}});
  device_->Free(large);  // The op still has it.
  EXPECT_EQ(Stats().live_bytes, 10u);
  device_->EndOp(op);
  EXPECT_EQ(Stats().live_bytes, 10u);
  EXPECT_EQ(Stats().peak_live_bytes, all);
  device_->ResetPeak();
  EXPECT_EQ(Stats().peak_live_bytes, 10u);
  device_->Free(second);
  EXPECT_EQ(Stats().live_bytes, 0u);
}

TEST_F(DeviceTest, BadArgumentsChangeNothing) {
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  void* address;
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Alloc(options, &address)));
  options.bytes = 100;
  options.align = 48;
  EXPECT_TRUE(absl::IsInvalidArgument(device_->Alloc(options, &address)));
  char* a = Alloc(MiB(2));
  device_->Free(a);
  device_->Free(a);
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  EXPECT_FALSE(device_->FindBuffer(a, &info).ok());
  Op* op = nullptr;
  const mets_access access = {a, 0, METS_READ};
  EXPECT_TRUE(absl::IsInvalidArgument(device_->BeginOp(&access, 1, 0, &op)));
  EXPECT_EQ(op, nullptr);
}

TEST_F(DeviceTest, SmallAllocationsShareASlab) {
  char* a = Alloc(KiB(10));
  char* b = Alloc(KiB(10));
  EXPECT_EQ(Info(a).buffer_id, Info(b).buffer_id);
  EXPECT_EQ(Info(b).address, b);
  EXPECT_EQ(Info(b + 7).bytes, static_cast<uint64_t>(KiB(10).count()));
  EXPECT_EQ(uplink_.used(), MiB(4));
  std::memset(a, 1, KiB(10).count());
  std::memset(b, 2, KiB(10).count());
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Info(b).resident, 0);
  Op* op = Read(b);
  EXPECT_EQ(a[0], 1);
  EXPECT_EQ(b[10239], 2);
  End(op);
  device_->Free(a);
  device_->Free(b);
}

TEST_F(DeviceTest, EvictedBufferKeepsItsBytes) {
  char* a = Alloc(MiB(3));
  std::memset(a, 7, MiB(3).count());
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Info(a).resident, 0);
  EXPECT_TRUE(uplink_.used().is_zero());
  Op* op = Read(a);
  ASSERT_NE(op, nullptr);
  EXPECT_THAT(std::vector<char>(a, a + MiB(3).count()), Each(7));
  End(op);
  EXPECT_EQ(Stats().restored_bytes_total,
            static_cast<uint64_t>(MiB(3).count()));
}

TEST_F(DeviceTest, CleanBuffersLeaveWithoutACopy) {
  char* a = Alloc(MiB(2));
  std::memset(a, 1, MiB(2).count());
  v1::Slot slot;
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  End(Read(a));
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 1u);
  Op* op = Write(a);
  a[5] = 9;
  End(op);
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 1u);
  op = Read(a);
  EXPECT_EQ(a[5], 9);
  EXPECT_EQ(a[6], 1);
  End(op);
}

TEST_F(DeviceTest, ACleanBufferIsCopiedToAnotherSlot) {
  char* a = Alloc(MiB(2));
  a[0] = 3;
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  End(Read(a));
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 0u);
  Op* op = Read(a);
  EXPECT_EQ(a[0], 3);
  End(op);
}

TEST_F(DeviceTest, ASlotKeepsTheBytesOfABufferUntilItIsBack) {
  char* a = Alloc(MiB(2));
  char* b = Alloc(MiB(2));
  a[0] = 1;
  b[0] = 2;
  v1::Slot slot;
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Evict(b, &slot), v1::BUFFER_OUTCOME_SKIPPED);
  Op* op = Read(a);
  EXPECT_EQ(a[0], 1);
  End(op);
  EXPECT_EQ(Evict(b, &slot), v1::BUFFER_OUTCOME_DONE);
  // It was clean before.
  EXPECT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_SKIPPED);
  device_->Free(b);
  EXPECT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 0u);
  op = Read(a);
  EXPECT_EQ(a[0], 1);
  End(op);
}

TEST_F(DeviceTest, OnlyWhatTheProgramUsesOfARangeIsCopied) {
  device_->Free(Alloc(MiB(2)));
  char* a = Alloc(MiB(2) - KiB(100));  // In the same range.
  a[(MiB(2) - KiB(100)).count() - 1] = 1;
  v1::Slot slot = uplink_.NewSlot(*device_, MiB(2) - KiB(100));
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  Op* op = Read(a);
  EXPECT_EQ(a[(MiB(2) - KiB(100)).count() - 1], 1);
  End(op);
  EXPECT_EQ(Stats().restored_bytes_total,
            static_cast<uint64_t>((MiB(2) - KiB(100)).count()));
}

TEST_F(DeviceTest, PinnedAndHeldBuffersStay) {
  char* a = Alloc(MiB(2));
  Op* op = Read(a);
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_SKIPPED);
  End(op);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kHeld).ok());
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_SKIPPED);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kMovable).ok());
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kHeld).ok());
  EXPECT_EQ(Info(a).resident, 1);
}

TEST_F(DeviceTest, BuffersAllocatedInAnOpStayPinnedUntilItsEnd) {
  Op* op = Begin({{nullptr, static_cast<uint64_t>(MiB(2).count()), METS_NEW}});
  ASSERT_NE(op, nullptr);
  char* a = Alloc(MiB(2));
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_EQ(op->allocated_count, 1u);
  End(op);
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
}

TEST_F(DeviceTest, SwappedBuffersAreFreedWithTheirSlot) {
  char* a = Alloc(MiB(2));
  device_->ReportChanges(ReportScope::kAll);
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  const uint64_t id = Info(a).buffer_id;
  device_->Free(a);
  uplink_.TakeSent();
  ASSERT_TRUE(device_->ReportChanges(ReportScope::kAll));
  const v1::BufferChanges changes = uplink_.TakeSent().back().buffer_changes();
  ASSERT_EQ(changes.buffers_size(), 1);
  EXPECT_EQ(changes.buffers(0).buffer_id(), id);
  EXPECT_TRUE(changes.buffers(0).freed());
  EXPECT_EQ(Stats().swapped_bytes, 0u);
}

// Its object is that of the next buffer.
TEST_F(DeviceTest, WhatFollowsABufferFreedBeforeItsOrdersAnswerIsReported) {
  char* a = Alloc(MiB(2));
  const uint64_t id = Info(a).buffer_id;
  ASSERT_EQ(device_->Evict(id, uplink_.NewSlot(*device_, MiB(2)), 1).outcome,
            v1::BUFFER_OUTCOME_DONE);
  device_->Free(a);
  char* b = Alloc(MiB(2));
  v1::OrderDone done;
  done.add_results()->set_buffer_id(id);
  done.mutable_results(0)->set_outcome(v1::BUFFER_OUTCOME_DONE);
  device_->AnswerEvictions(std::move(done));
  uplink_.TakeSent();
  ASSERT_TRUE(device_->ReportChanges(ReportScope::kAll));
  const v1::BufferChanges changes = uplink_.TakeSent().back().buffer_changes();
  ASSERT_EQ(changes.buffers_size(), 1);
  EXPECT_EQ(changes.buffers(0).buffer_id(), Info(b).buffer_id);
}

TEST_F(DeviceTest, TellsWhatMovesCostItsOps) {
  char* a = Alloc(MiB(2));
  v1::Slot slot;
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  End(Read(a));
  ASSERT_EQ(Evict(a, &slot), v1::BUFFER_OUTCOME_DONE);
  End(Read(a));
  End(Read(a));  // It waits for nothing.
  device_->StepEnds();
  device_->StepEnds();
  device_->StepEnds();
  ASSERT_TRUE(device_->SendLastTotals());
  EXPECT_FALSE(device_->SendLastTotals());
  const v1::Totals totals = uplink_.TakeSent().back().buffer_changes().totals();
  EXPECT_EQ(totals.evictions(), 2u);
  EXPECT_EQ(totals.clean_evictions(), 1u);
  EXPECT_EQ(totals.restores(), 2u);
  EXPECT_GT(totals.restore_stall_us(), 0u);
  EXPECT_EQ(totals.steps(), 2u);
  End(Read(a));
  EXPECT_FALSE(device_->SendLastTotals());
}

TEST_F(DeviceTest, NothingToSayIsNotSaid) {
  char* a = Alloc(MiB(2));
  EXPECT_TRUE(device_->ReportChanges(ReportScope::kAll));
  EXPECT_FALSE(device_->ReportChanges(ReportScope::kAll));
  for (const uint32_t then = CoarseNowMs(); CoarseNowMs() == then;) {
  }
  Op* op = Read(a);
  End(op);
  EXPECT_FALSE(device_->ReportChanges(ReportScope::kLasting));
  EXPECT_TRUE(device_->ReportChanges(ReportScope::kLastingUses));
}

TEST_F(DeviceTest, BuffersThatDoNotLastAreNotReportedWhileNothingIsTight) {
  char* lasting = Alloc(MiB(2));
  const uint64_t id = Info(lasting).buffer_id;
  device_->ReportChanges(ReportScope::kLasting);
  char* brief = Alloc(MiB(2));
  uplink_.TakeSent();
  ASSERT_TRUE(device_->ReportChanges(ReportScope::kLasting));
  const v1::BufferChanges changes = uplink_.TakeSent().back().buffer_changes();
  ASSERT_EQ(changes.buffers_size(), 1);
  EXPECT_EQ(changes.buffers(0).buffer_id(), id);
  device_->Free(brief);
  // The same address, another buffer.
  brief = Alloc(MiB(2));
  EXPECT_FALSE(device_->ReportChanges(ReportScope::kLasting));
  EXPECT_TRUE(device_->ReportChanges(ReportScope::kAll));
}

TEST_F(DeviceTest, ABufferThatNoOpHasUsedCountsAsUsedAtItsFirstReport) {
  Alloc(MiB(1));
  uplink_.TakeSent();
  ASSERT_TRUE(device_->ReportChanges(ReportScope::kAll));
  const v1::BufferChanges changes = uplink_.TakeSent().back().buffer_changes();
  ASSERT_EQ(changes.buffers_size(), 1);
  EXPECT_LT(changes.buffers(0).idle_ms(), 10000u);
  EXPECT_FALSE(device_->ReportChanges(ReportScope::kAll)) << "it stays so";
}

TEST_F(DeviceTest, TrimGivesTheOldestCachedMemoryBack) {
  char* a = Alloc(MiB(2));
  char* b = Alloc(MiB(4));
  device_->Free(a);
  device_->Free(b);
  EXPECT_EQ(uplink_.used(), MiB(6));
  device_->Trim(MiB(1), 5);
  EXPECT_EQ(uplink_.used(), MiB(4));
  device_->Trim(MiB(100), 6);
  EXPECT_TRUE(uplink_.used().is_zero());
}

TEST_F(DeviceTest, WhatIsCachedAgainAfterATrimIsReportedAgain) {
  device_->Free(Alloc(MiB(4)));
  EXPECT_TRUE(device_->ReportChanges(ReportScope::kAll));
  EXPECT_FALSE(device_->ReportChanges(ReportScope::kAll));
  // The trim and what comes behind it lie between two reports; metsd has taken
  // the trim off what the last one said.
  device_->Trim(MiB(4), 5);
  device_->Free(Alloc(MiB(4)));
  EXPECT_TRUE(device_->ReportChanges(ReportScope::kAll));
}

TEST_F(DeviceTest, ATightDeviceRebuildsRangesFromTheCache) {
  device_->SetLimits(Bytes(), true);
  char* a = Alloc(MiB(2));
  char* b = Alloc(MiB(2));
  device_->Free(a);
  device_->Free(b);
  const int acquires = uplink_.acquires();
  char* c = Alloc(MiB(4));
  EXPECT_EQ(uplink_.acquires(), acquires);
  c[MiB(4).count() - 1] = 1;
}

// Before it waits for memory, or while nothing had been tight so far.
TEST_F(DeviceTest, WhereMetsdHasNoneLeftRangesAreRebuiltFromTheCache) {
  char* used = Alloc(MiB(4));
  std::vector<char*> cached;
  for (int i = 0; i < 15; ++i) cached.push_back(Alloc(MiB(4)));
  for (char* range : cached) device_->Free(range);
  ASSERT_EQ(uplink_.used(), MiB(64));
  char* c = Alloc(MiB(12));
  c[MiB(12).count() - 1] = 1;
  Op* op = Read(used);
  c = Alloc(MiB(20));
  c[MiB(20).count() - 1] = 1;
  End(op);
  EXPECT_EQ(uplink_.tokens_taken(), 0);
}

TEST_F(DeviceTest, ReservedMemoryIsTheOps) {
  device_->SetLimits(Bytes(), true);
  const uint64_t size = MiB(32).count();
  Op* op = Begin({{nullptr, size, METS_NEW}, {nullptr, size, METS_NEW}});
  EXPECT_EQ(uplink_.used(), MiB(64));
  std::thread([this] {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = MiB(32).count();
    void* address;
    EXPECT_TRUE(absl::IsResourceExhausted(device_->Alloc(options, &address)));
  }).join();
  char* temporary = Alloc(MiB(32));
  device_->Free(temporary);
  EXPECT_EQ(Alloc(MiB(32)), temporary);
  EXPECT_NE(Alloc(MiB(32)), nullptr);
  EXPECT_EQ(uplink_.tokens_taken(), 0);
  End(op);
}

TEST_F(DeviceTest, OpsOfUnknownNeedTakeTheTokenOnATightDevice) {
  End(Begin({}, METS_UNKNOWN));
  EXPECT_EQ(uplink_.tokens_taken(), 0);
  device_->SetLimits(Bytes(), true);
  Op* op = Begin({}, METS_UNKNOWN);
  EXPECT_EQ(uplink_.tokens(), 1);
  End(op);
  EXPECT_EQ(uplink_.tokens(), 0);
}

TEST_F(DeviceTest, OnlyAnOpWithinAnotherSharesItsToken) {
  device_->SetLimits(Bytes(), true);
  Op* outer = Begin({}, METS_UNKNOWN);
  Op* inner = Begin({}, METS_UNKNOWN);
  std::thread([this] { End(Begin({}, METS_UNKNOWN)); }).join();
  const std::vector<uint64_t> ops = uplink_.token_ops();
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[1], ops[0]);
  EXPECT_NE(ops[2], ops[0]);
  End(inner);
  End(outer);
}

TEST_F(DeviceTest, AnOpThatOutgrowsItsReservationTakesTheToken) {
  char* a = Alloc(MiB(32));
  char* b = Alloc(MiB(32));
  a[0] = 5;
  // The first request finds nothing; the second one, with the token, does.
  int asked = 0;
  uplink_.reclaim = [&](Bytes) {
    return asked++ > 0 && Evict(a) == v1::BUFFER_OUTCOME_DONE;
  };
  Op* op = Read(b);
  char* c = Alloc(MiB(16));
  EXPECT_NE(c, nullptr);
  EXPECT_EQ(uplink_.tokens(), 1);
  End(op);
  EXPECT_EQ(uplink_.tokens(), 0);
}

TEST_F(DeviceTest, AFaultBringsTheBufferBackAndHoldsIt) {
  char* a = Alloc(MiB(2));
  a[9] = 4;
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  EXPECT_TRUE(device_->ServeFault(a + 9, Access()));
  EXPECT_EQ(a[9], 4);
  EXPECT_EQ(Stats().unobserved_accesses_total, 1u);
  EXPECT_EQ(Info(a).mobility, METS_HELD);
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_FALSE(device_->ServeFault(a + GiB(1).count(), Access()));
}

TEST_F(DeviceTest, ANewEpochLeavesOrphansThatShrink) {
  char* a = Alloc(MiB(2));
  char* b = Alloc(MiB(4));
  a[0] = 1;
  b[0] = 2;
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  device_->Mute();
  uplink_.set_epoch(2);
  device_->BeginEpoch(1);
  uplink_.TakeSent();
  device_->SendSnapshot(true);
  const v1::Snapshot snapshot = uplink_.TakeSent().back().snapshot();
  EXPECT_TRUE(snapshot.last());
  EXPECT_EQ(snapshot.chunk_ids_size(), 0);
  EXPECT_EQ(snapshot.orphan_bytes(), static_cast<uint64_t>(MiB(4).count()));
  EXPECT_EQ(snapshot.orphan_swap_bytes(),
            static_cast<uint64_t>(MiB(2).count()));
  ASSERT_EQ(snapshot.buffers_size(), 2);

  Op* op = Read(a);
  EXPECT_EQ(a[0], 1);
  End(op);
  ASSERT_EQ(Evict(b), v1::BUFFER_OUTCOME_DONE);
  // The release, then the order's answer.
  const auto sent = uplink_.TakeSent();
  ASSERT_GE(sent.size(), 2u);
  EXPECT_TRUE(sent.back().has_order_done());
  EXPECT_EQ(sent[sent.size() - 2].release().orphan_bytes(),
            static_cast<uint64_t>(MiB(4).count()));
  op = Read(b);
  EXPECT_EQ(b[0], 2);
  End(op);
}

TEST_F(DeviceTest, AnOpThatAllocatesWaitsForADaemonThatIsAway) {
  char* a = Alloc(MiB(4));
  Op* op = Read(a);
  ASSERT_NE(op, nullptr);
  uplink_.away = true;
  EXPECT_NE(Alloc(MiB(4)), nullptr);
  EXPECT_FALSE(uplink_.away);
  End(op);
}

TEST_F(DeviceTest, AStepsTimeLeavesOutWhatItsOpsWaitedOnce) {
  constexpr absl::Duration kWork = absl::Milliseconds(30);
  char* a = Alloc(MiB(20));
  ASSERT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  uplink_.set_pool(MiB(0));
  uplink_.reclaim = [this, kWork](Bytes) {
    absl::SleepFor(kWork);
    device_->NoteAcquire(kWork);  // As a request that waited.
    uplink_.set_pool(MiB(64));
    return true;
  };
  device_->StepEnds();
  uplink_.TakeSent();
  const absl::Time start = absl::Now();
  Op* op = Read(a);
  absl::SleepFor(kWork);
  End(op);
  device_->StepEnds();
  const auto sent = uplink_.TakeSent();
  ASSERT_TRUE(sent.back().has_step_need());
  const absl::Duration step =
      absl::Microseconds(sent.back().step_need().step_us());
  EXPECT_GE(step, kWork);
  EXPECT_LE(step, absl::Now() - start - kWork);
}

// Ops, evictions, frees and allocations of several threads at once: every
// buffer keeps its bytes.
TEST_F(DeviceTest, ConcurrentOpsAndEvictionsKeepEveryByte) {
  constexpr int kThreads = 3;
  constexpr int kBuffers = 6;
  std::atomic<bool> stop{false};
  absl::Mutex mutex;
  std::vector<char*> all;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<char*> mine;
      for (int round = 0; !stop; ++round) {
        const size_t slot = round % kBuffers;
        if (mine.size() <= slot) {
          mine.push_back(Alloc(MiB(1)));
          std::memset(mine[slot], t, MiB(1).count());
          absl::MutexLock lock(&mutex);
          all.push_back(mine[slot]);
        }
        Op* op = round % 2 == 0 ? Write(mine[slot]) : Read(mine[slot]);
        for (size_t i = 0; i < 1 << 20; i += 65536) {
          ASSERT_EQ(mine[slot][i], t) << "round " << round;
          if (round % 2 == 0) mine[slot][i] = t;
        }
        End(op);
      }
    });
  }
  std::map<char*, v1::Slot> slots;
  uint64_t turn = 0;
  // Until enough buffers have come back, whatever the threads' speed.
  while (Stats().restored_bytes_total <
         static_cast<uint64_t>(MiB(50).count())) {
    char* victim = nullptr;
    {
      absl::MutexLock lock(&mutex);
      if (!all.empty()) victim = all[turn++ % all.size()];
    }
    if (victim == nullptr) continue;
    v1::Slot& slot = slots[victim];
    if (slot.slot_id() == 0) slot = uplink_.NewSlot(*device_, MiB(1));
    const uint64_t id = Info(victim).buffer_id;
    const Device::EvictResult result = device_->Evict(id, slot, 1);
    v1::OrderDone done;
    done.add_results()->set_buffer_id(id);
    done.mutable_results(0)->set_outcome(result.outcome);
    device_->AnswerEvictions(std::move(done));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mets::client
