#include "daemon/sim/chunk_purse.h"

#include <gtest/gtest.h>

namespace mets::sim {
namespace {

Chunks ChunksOf(std::vector<Bytes> sizes) {
  Chunks chunks;
  for (Bytes size : sizes) {
    chunks.push_back({ChunkId(chunks.size() + 1), size});
  }
  return chunks;
}

TEST(ChunkPurseTest, TakesTheLargestThatFit) {
  ChunkPurse purse;
  purse.Put(ChunksOf({MiB(4), MiB(1), MiB(1), MiB(16)}));
  Chunks taken;
  ASSERT_TRUE(purse.Take(MiB(5), &taken));
  EXPECT_EQ(TotalSize(taken), MiB(5));
  EXPECT_EQ(taken.size(), 2u);
  EXPECT_EQ(purse.bytes(), MiB(17));
}

TEST(ChunkPurseTest, WhatDoesNotFitStays) {
  ChunkPurse purse;
  purse.Put(ChunksOf({MiB(4), MiB(16)}));
  Chunks taken;
  EXPECT_FALSE(purse.Take(MiB(6), &taken));
  EXPECT_TRUE(taken.empty());
  EXPECT_EQ(purse.bytes(), MiB(20));
  EXPECT_TRUE(purse.TakeAny(MiB(4)).size() == 1);
  // A little may be wasted.
  EXPECT_TRUE(purse.Take(MiB(15), &taken));
  EXPECT_EQ(TotalSize(taken), MiB(16));
}

TEST(ChunkPurseTest, TakeAnyGivesSmallOnesFirst) {
  ChunkPurse purse;
  purse.Put(ChunksOf({MiB(4), MiB(1)}));
  EXPECT_EQ(TotalSize(purse.TakeAny(MiB(1))), MiB(1));
  EXPECT_EQ(TotalSize(purse.TakeAny(MiB(9))), MiB(4));
}

}  // namespace
}  // namespace mets::sim
