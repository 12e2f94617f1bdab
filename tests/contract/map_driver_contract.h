// What every MapDriver must do: ranges, mappings, copies. Include once, then
// INSTANTIATE_TEST_SUITE_P(…, MapDriverContract, Values(backend…), Name).
// Streams and processes: map_driver_stream_contract.h.
#ifndef METS_TESTS_CONTRACT_MAP_DRIVER_CONTRACT_H_
#define METS_TESTS_CONTRACT_MAP_DRIVER_CONTRACT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/contract/map_driver_fixture.h"

namespace mets {

TEST_P(MapDriverContract, RangesAreAlignedAndDisjointAndInTheRegion) {
  const Bytes unit = map_->info().granularity;
  std::set<char*> ends;
  char* last_begin = nullptr;
  for (int pieces : {1, 3, 32, 64, 7}) {
    char* range = Reserve(unit * pieces);
    EXPECT_EQ(reinterpret_cast<uint64_t>(range) % unit.count(), 0u);
    EXPECT_GE(range, map_->region_begin());
    EXPECT_LE(range + unit.count() * pieces, map_->region_end());
    for (const auto& [other, size] : reserved_) {
      if (other == range) continue;
      EXPECT_TRUE(other + size.count() <= range ||
                  range + unit.count() * pieces <= other);
    }
    last_begin = range;
  }
  EXPECT_NE(last_begin, nullptr);
}

TEST_P(MapDriverContract, RangesOfOddSizesAreRefused) {
  for (Bytes size : {Bytes(0), Bytes(-65536), Bytes(1),
                     map_->info().granularity + Bytes(1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(map_->ReserveRange(size).status()))
        << size.count();
  }
}

TEST_P(MapDriverContract, RangeHasMemoryOnlyWhileMapped) {
  if (!GetParam().is_host) GTEST_SKIP() << "not memory of the process";
  const Buffer b = MakeBuffer({small_});
  EXPECT_FALSE(IsReadable(b.range));
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_TRUE(IsWritable(b.range));
  EXPECT_TRUE(IsWritable(b.range + small_.count() - 1));
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  EXPECT_FALSE(IsReadable(b.range));
}

TEST_P(MapDriverContract, FreshChunksAreZero) {
  const Buffer b = MakeBuffer({large_, small_});
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_EQ(Read(b), std::string(b.size.count(), '\0'));
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, ContentsSurviveUnmapAndMapElsewhere) {
  const Buffer b = MakeBuffer({large_, small_});
  const std::string bytes = Fill(b, 1);
  char* elsewhere = Reserve(b.size);
  for (char* range : {b.range, elsewhere, b.range}) {
    if (range != b.range) {
      EXPECT_TRUE(map_->Unmap(b.range, b.chunks).ok());
      ASSERT_TRUE(map_->Map(range, b.chunks).ok());
      EXPECT_EQ(GetParam().read(range, b.size.count()), bytes);
      EXPECT_TRUE(map_->Unmap(range, b.chunks).ok());
      ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
    }
    EXPECT_EQ(Read(b), bytes);
  }
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, ARangeThatIsUnmappedLaterGivesItsChunksAtOnce) {
  const StreamHandle stream = *map_->CreateStream();
  const Buffer b = MakeBuffer({large_, small_});
  const Buffer c = {Reserve(b.size), b.size, b.chunks};
  const std::string bytes = Fill(b, 4);
  const absl::StatusOr<Fence> fence = map_->Record(stream);
  ASSERT_TRUE(fence.ok()) << fence.status();
  ASSERT_TRUE(map_->UnmapAfter({*fence}, b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Map(c.range, c.chunks).ok());
  EXPECT_EQ(Read(c), bytes);
  EXPECT_TRUE(absl::IsInvalidArgument(map_->Unmap(b.range, b.chunks)));
  // The first range is not ours any more.
  ASSERT_TRUE(map_->UnmapAfter({}, c.range, c.chunks).ok());
  const absl::StatusOr<char*> again = map_->ReserveRangeFor(b.chunks, b.size);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again == b.range || *again == c.range);
  map_->ReleaseRange(*again, b.size);
  map_->DestroyStream(stream);
}

TEST_P(MapDriverContract, ChunksLieInTheOrderGiven) {
  Buffer b = MakeBuffer({small_, small_});
  const std::string bytes = Fill(b, 2);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  std::swap(b.chunks[0], b.chunks[1]);
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_EQ(Read(b),
            bytes.substr(small_.count()) + bytes.substr(0, small_.count()));
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, EvictedBufferComesBackInOtherChunks) {
  const Buffer b = MakeBuffer({large_, small_});
  const std::string bytes = Fill(b, 3);
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  Evict(b, slot);
  Buffer other = MakeBuffer({small_, large_});
  (void)Fill(other, 4);
  ASSERT_TRUE(map_->Unmap(other.range, other.chunks).ok());
  Done(map_->CopyIn(b.range, other.chunks, slot, b.size,
                    StreamHandle::kHostOrder));
  EXPECT_EQ(Read(b), bytes);
  ASSERT_TRUE(map_->Unmap(b.range, other.chunks).ok());
}

TEST_P(MapDriverContract, OnlySizeBytesMoveAndSlotsMayBeInPieces) {
  const Buffer b = MakeBuffer({small_, small_, small_});
  const std::string bytes = Fill(b, 5);
  const Bytes size = b.size - Bytes(4097);
  const Bytes room = small_ * 16;
  const ExtentHandle extent = MakeExtent(room);
  const std::vector<ExtentPiece> slot = {
      {extent, Bytes(12), Bytes(70001)},
      {MakeExtent(room), room - Bytes(11), Bytes(11)},
      {extent, Bytes(80000), size}};
  const std::string moved = bytes.substr(0, size.count());
  Done(map_->CopyOut(b.range, b.chunks, slot, size, StreamHandle::kHostOrder));
  (void)Overwrite(b, 6);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  Done(map_->CopyIn(b.range, b.chunks, slot, size, StreamHandle::kHostOrder));
  EXPECT_TRUE(GetParam().read(b.range, size.count()) == moved);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, ReadOnlyRangeIsReadUntilItIsUnmapped) {
  const Buffer b = MakeBuffer({large_, small_});
  const std::string bytes = Fill(b, 9);
  ASSERT_TRUE(map_->SetReadOnly(b.range, b.chunks, true).ok());
  EXPECT_TRUE(Read(b) == bytes);
  if (GetParam().is_host) {
    EXPECT_FALSE(IsWritable(b.range));
    EXPECT_FALSE(IsWritable(b.range + b.size.count() - 1));
  }
  ASSERT_TRUE(map_->SetReadOnly(b.range, b.chunks, false).ok());
  const std::string changed = Overwrite(b, 10);
  EXPECT_TRUE(Read(b) == changed);
  ASSERT_TRUE(map_->SetReadOnly(b.range, b.chunks, true).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_TRUE(Read(b) == changed);
  const std::string again = Overwrite(b, 11);
  EXPECT_TRUE(Read(b) == again);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  EXPECT_FALSE(map_->SetReadOnly(b.range, b.chunks, true).ok());
}

TEST_P(MapDriverContract, BlockedRangeCannotBeWrittenButCopied) {
  const Buffer b = MakeBuffer({large_, small_});
  const std::string bytes = Fill(b, 7);
  ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok()) << "twice";
  if (GetParam().is_host) {
    EXPECT_FALSE(IsWritable(b.range));
    EXPECT_FALSE(IsWritable(b.range + b.size.count() - 1));
  }
  const std::vector<ExtentPiece> slot = MakeSlot(b.size);
  Done(
      map_->CopyOut(b.range, b.chunks, slot, b.size, StreamHandle::kHostOrder));
  ASSERT_TRUE(map_->AllowAccess(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->AllowAccess(b.range, b.chunks).ok()) << "twice";
  EXPECT_EQ(Read(b), bytes);
  (void)Overwrite(b, 8);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  Done(map_->CopyIn(b.range, b.chunks, slot, b.size, StreamHandle::kHostOrder));
  EXPECT_EQ(Read(b), bytes) << "the copy made while blocked";
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, BlockedRangeCanBeUnmappedAndMapped) {
  const Buffer b = MakeBuffer({large_});
  const std::string bytes = Fill(b, 9);
  ASSERT_TRUE(map_->BlockAccess(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_EQ(Read(b), bytes);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, FailedMapLeavesEverything) {
  const Buffer b = MakeBuffer({small_});
  const Buffer other = MakeBuffer({small_});
  const std::string bytes = Fill(other, 10);
  const std::vector<ChunkHandle> unknown = {b.chunks[0], ChunkHandle{12345}};
  EXPECT_FALSE(map_->Map(b.range, unknown).ok());
  const std::vector<ChunkHandle> mapped = {b.chunks[0], other.chunks[0]};
  EXPECT_FALSE(map_->Map(b.range, mapped).ok());
  EXPECT_FALSE(map_->Map(map_->region_end(), b.chunks).ok());
  EXPECT_FALSE(map_->Unmap(b.range, b.chunks).ok()) << "was not mapped";
  EXPECT_FALSE(map_->Unmap(b.range, other.chunks).ok()) << "mapped elsewhere";
  EXPECT_EQ(Read(other), bytes);
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  ASSERT_TRUE(map_->Unmap(other.range, other.chunks).ok());
}

TEST_P(MapDriverContract, FailedCopiesLeaveEverything) {
  const Buffer b = MakeBuffer({small_});
  const std::string bytes = Fill(b, 11);
  const Bytes room = small_ * 16;
  const ExtentHandle extent = MakeExtent(room);
  const std::vector<std::vector<ExtentPiece>> bad_slots = {
      {},
      {{extent, Bytes(), small_ - Bytes(1)}},
      {{extent, room, small_}},
      {{extent, Bytes(-1), small_}},
      {{extent, Bytes(INT64_MAX - 5), Bytes(INT64_MAX - 5)}},
      {{ExtentHandle{12345}, Bytes(), small_}}};
  for (const std::vector<ExtentPiece>& slot : bad_slots) {
    EXPECT_FALSE(Finish(map_->CopyOut(b.range, b.chunks, slot, small_,
                                      StreamHandle::kHostOrder))
                     .ok());
  }
  const std::vector<ExtentPiece> slot = {{extent, Bytes(), room}};
  EXPECT_FALSE(Finish(map_->CopyOut(b.range, b.chunks, slot, room,
                                    StreamHandle::kHostOrder))
                   .ok())
      << "more than is mapped";
  EXPECT_EQ(Read(b), bytes);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
  for (const std::vector<ExtentPiece>& bad : bad_slots) {
    EXPECT_FALSE(Finish(map_->CopyIn(b.range, b.chunks, bad, small_,
                                     StreamHandle::kHostOrder))
                     .ok());
  }
  if (GetParam().is_host) {
    EXPECT_FALSE(IsReadable(b.range));
  }
  ASSERT_TRUE(map_->Map(b.range, b.chunks).ok());
  EXPECT_EQ(Read(b), bytes);
  ASSERT_TRUE(map_->Unmap(b.range, b.chunks).ok());
}

TEST_P(MapDriverContract, ImportRefusesAnotherSize) {
  absl::StatusOr<UniqueFd> fd = pool_->CreateChunk(small_);
  ASSERT_TRUE(fd.ok());
  EXPECT_FALSE(map_->ImportChunk(UniqueFd(dup(fd->get())), large_).ok());
  EXPECT_FALSE(map_->ImportChunk(UniqueFd(), small_).ok());
  EXPECT_FALSE(map_->RegisterExtent(UniqueFd(), small_).ok());
  ASSERT_TRUE(pool_->ReleaseChunk(*std::move(fd)).ok());
}

TEST_P(MapDriverContract, ForgottenChunkIsUnknown) {
  Buffer b = MakeBuffer({small_});
  map_->ForgetChunk(b.chunks[0]);
  EXPECT_FALSE(map_->Map(b.range, b.chunks).ok());
}

// A long random life of four buffers, compared with a model.
TEST_P(MapDriverContract, RandomEvictionsAndRestoresKeepEveryByte) {
  RandomLife life(*this);
  for (int step = 0; step < 300; ++step) life.Step();
  life.Finish();
}

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_MAP_DRIVER_CONTRACT_H_
