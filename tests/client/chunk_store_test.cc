#include "client/src/chunk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::client {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class ChunkStoreTest : public testing::Test {
 protected:
  Chunk* Held(Bytes size) {
    ++last_;
    Chunk* chunk = store_.Add(last_, size, ChunkHandle(last_));
    store_.Hold(chunk);
    return chunk;
  }
  uint64_t last_ = 0;
  ChunkStore store_;
};

TEST_F(ChunkStoreTest, FillsASizeExactly) {
  store_.AddIdle({Held(MiB(4)), Held(MiB(1)), Held(KiB(256)), Held(KiB(64))});
  ChunkSet chunks;
  EXPECT_FALSE(store_.TakeExact(MiB(2), &chunks));
  EXPECT_TRUE(store_.TakeExact(MiB(5), &chunks));
  ASSERT_THAT(chunks, SizeIs(2));
  EXPECT_EQ(chunks[0]->size, MiB(4));
  EXPECT_EQ(store_.idle_bytes(), KiB(320));
}

TEST_F(ChunkStoreTest, FillsASizeWithSomewhatMoreWhereItMay) {
  store_.AddIdle({Held(MiB(4)), Held(MiB(4)), Held(MiB(1))});
  ChunkSet chunks;
  EXPECT_FALSE(store_.TakeUpTo(MiB(6), MiB(7), &chunks));
  EXPECT_TRUE(store_.TakeUpTo(MiB(4) + KiB(64), MiB(5), &chunks));
  EXPECT_EQ(TotalSize(chunks), MiB(5));
  EXPECT_EQ(store_.idle_bytes(), MiB(4));
  chunks.clear();
  EXPECT_TRUE(store_.TakeUpTo(MiB(4), MiB(5), &chunks));
  EXPECT_EQ(TotalSize(chunks), MiB(4)) << "exactly, where it can";
}

TEST_F(ChunkStoreTest, GivesSmallIdleChunksFirst) {
  store_.AddIdle({Held(MiB(4)), Held(KiB(64)), Held(KiB(64))});
  EXPECT_THAT(store_.TakeIdle(KiB(100)), SizeIs(2));
  EXPECT_THAT(store_.TakeIdle(MiB(100)), SizeIs(1));
  EXPECT_TRUE(store_.idle_bytes().is_zero());
}

TEST_F(ChunkStoreTest, HeldChunksBecomeOrphansOfTheNextEpoch) {
  Chunk* held = Held(MiB(1));
  Chunk* dropped = Held(MiB(4));
  store_.Drop(dropped);
  EXPECT_THAT(store_.HeldIds(), UnorderedElementsAre(held->id));
  EXPECT_THAT(store_.BeginEpoch(), UnorderedElementsAre(ChunkHandle(2)));
  EXPECT_THAT(store_.HeldIds(), IsEmpty());
  EXPECT_EQ(store_.orphan_bytes(), MiB(1));
  EXPECT_EQ(store_.held_bytes(), MiB(1));
  EXPECT_EQ(store_.Find(1), nullptr);
  store_.Erase(held);
  EXPECT_TRUE(store_.orphan_bytes().is_zero());
  EXPECT_TRUE(store_.held_bytes().is_zero());
}

TEST_F(ChunkStoreTest, SplitsAReservation) {
  ChunkSet from = {Held(MiB(4)), Held(MiB(4)), Held(MiB(1))};
  ChunkSet to;
  EXPECT_FALSE(SplitExact(MiB(6), &from, &to));
  EXPECT_TRUE(SplitExact(MiB(5), &from, &to));
  EXPECT_EQ(TotalSize(to), MiB(5));
  EXPECT_EQ(TotalSize(from), MiB(4));
}

}  // namespace
}  // namespace mets::client
