#include "client/src/chunk_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kSmall = 2 << 20, kMiddle = 8 << 20, kLarge = 32 << 20;

// Sixteen ops of a second each.
class CutTest : public testing::Test {
 protected:
  static constexpr int kOps = 16;

  CutTest() {
    program_.duration = absl::Seconds(kOps);
    for (int i = 0; i < kOps; ++i) {
      program_.ops.push_back({absl::Seconds(i), absl::Seconds(1), {}, {}});
    }
  }

  uint32_t Add(Bytes size, bool persistent) {
    program_.buffers.push_back({size, persistent});
    return program_.buffers.size() - 1;
  }
  // It is allocated and freed by these ops.
  uint32_t Add(Bytes size, bool persistent, int from, int to) {
    const uint32_t buffer = Add(size, persistent);
    program_.ops[from].accesses.push_back({buffer, steps::AccessKind::kNew});
    program_.ops[to].frees.push_back(buffer);
    return buffer;
  }
  void AddAbsence(uint32_t buffer, uint32_t after, uint32_t at,
                  bool returns = true) {
    absences_.push_back({buffer, after, at, at, false, returns});
  }
  // Of the middle class, without what is spare.
  int64_t Middle() {
    const ChunkCounts cut =
        CutFor(program_, absences_, {MiB(2), MiB(8), MiB(32)}, GiB(4));
    int64_t count = cut.at(kMiddle);
    for (int64_t need = 0; need <= count; ++need) {
      if (need + need / 8 + 2 == count) return need;
    }
    ADD_FAILURE() << count;
    return -1;
  }

  steps::StepProgram program_;
  std::vector<steps::Absence> absences_;
};

TEST_F(CutTest, SizesAreCutIntoTheFewestChunks) {
  Add(MiB(32 + 3 * 8 + 2), true);
  Add(MiB(8) + KiB(1), true);  // Another 2 MiB.
  const ChunkCounts cut =
      CutFor(program_, {}, {MiB(2), MiB(8), MiB(32)}, MiB(320));
  EXPECT_THAT(cut, ElementsAre(Pair(kSmall, 2 + 2), Pair(kMiddle, 4 + 2),
                               Pair(kLarge, (320 - 8 - 48) / 32)));
}

TEST_F(CutTest, WhatNeverLivesAtATimeSharesChunks) {
  Add(MiB(16), false, 0, 3);
  Add(MiB(16), false, 4, 7);
  EXPECT_EQ(Middle(), 2);
  Add(MiB(8), false, 7, 8);
  EXPECT_EQ(Middle(), 3);
}

TEST_F(CutTest, WhatLivesAroundTheStepsEndIsCountedThere) {
  Add(MiB(24), true, 12, 4);
  Add(MiB(8), false, 5, 11);
  EXPECT_EQ(Middle(), 3);
  Add(MiB(8), false, 15, 15);
  EXPECT_EQ(Middle(), 4);
}

TEST_F(CutTest, WhatIsReplacedLivesTwice) {
  Add(MiB(16), true, 4, 5);
  EXPECT_EQ(Middle(), 4);
}

TEST_F(CutTest, WhatIsAwayNeedsNothingOnceItIsGone) {
  const uint32_t buffer = Add(MiB(24), true);
  AddAbsence(buffer, 2, 10);
  Add(MiB(16), false, 4, 9);
  EXPECT_EQ(Middle(), 3);
  Add(MiB(8), false, 3, 3);  // Its bytes are still being copied.
  EXPECT_EQ(Middle(), 4);
}

TEST_F(CutTest, AnAbsenceMayGoAroundTheStepsEnd) {
  const uint32_t buffer = Add(MiB(24), true);
  AddAbsence(buffer, 12, 3);
  Add(MiB(24), false, 14, 15);
  Add(MiB(24), false, 0, 2);
  EXPECT_EQ(Middle(), 3);
}

TEST_F(CutTest, WhatIsFreedWhileItIsAwayIsGoneUntilThen) {
  const uint32_t buffer = Add(MiB(24), false, 0, 9);
  AddAbsence(buffer, 2, 0, /*returns=*/false);
  Add(MiB(24), false, 4, 12);
  EXPECT_EQ(Middle(), 3);
}

TEST_F(CutTest, SmallerClassesTakeNoMoreThanThereIs) {
  Add(MiB(24), true);
  const ChunkCounts cut =
      CutFor(program_, {}, {MiB(2), MiB(8), MiB(32)}, MiB(14));
  EXPECT_THAT(cut,
              ElementsAre(Pair(kSmall, 2), Pair(kMiddle, 1), Pair(kLarge, 0)));
}

class ChunkCutTest : public testing::Test {
 protected:
  ChunkExchange Next(const ChunkCounts& held, const ChunkCounts& free) {
    return cut_.Helps(held, now_) ? cut_.Next(held, free) : ChunkExchange();
  }

  absl::Time now_ = absl::UnixEpoch();
  ChunkCut cut_;
};

TEST_F(ChunkCutTest, NothingIsWantedAtFirst) {
  EXPECT_TRUE(Next({{kSmall, 100}}, {{kSmall, 100}}).empty());
}

TEST_F(ChunkCutTest, SmallOnesThatAreFreeGoForLargeOnes) {
  cut_.Want({{kSmall, 4}, {kMiddle, 8}, {kLarge, 10}});
  ChunkExchange exchange =
      Next({{kSmall, 40}, {kMiddle, 9}}, {{kSmall, 30}, {kMiddle, 9}});
  EXPECT_THAT(exchange.give, ElementsAre(Pair(kSmall, 28), Pair(kMiddle, 1)));
  EXPECT_THAT(exchange.take, ElementsAre(Pair(kLarge, 2)));
  // The others are in use.
  exchange = Next({{kSmall, 40}, {kMiddle, 9}}, {{kSmall, 11}});
  EXPECT_TRUE(exchange.empty());
}

TEST_F(ChunkCutTest, LargeOnesGoForSmallOnes) {
  cut_.Want({{kSmall, 16}, {kMiddle, 8}, {kLarge, 1}});
  const ChunkExchange exchange =
      Next({{kMiddle, 2}, {kLarge, 3}}, {{kLarge, 3}});
  EXPECT_THAT(exchange.give, ElementsAre(Pair(kLarge, 2)));
  EXPECT_THAT(exchange.take, ElementsAre(Pair(kSmall, 8), Pair(kMiddle, 6)));
}

TEST_F(ChunkCutTest, AnExchangeIsOfABoundedSize) {
  cut_.Want({{kLarge, 100}});
  const ChunkExchange exchange = Next({{kSmall, 1600}}, {{kSmall, 1600}});
  EXPECT_THAT(exchange.take, ElementsAre(Pair(kLarge, 8)));
}

TEST_F(ChunkCutTest, ManyExchangesAreMadeOneByOne) {
  cut_.Want({{kLarge, 100}});
  const ChunkCounts held = {{kSmall, 1600}};
  for (int i = 0; i < ChunkCut::kAtOnce; ++i) {
    EXPECT_FALSE(Next(held, held).empty()) << i;
  }
  EXPECT_TRUE(Next(held, held).empty());
  now_ += ChunkCut::kPeriod;
  EXPECT_FALSE(Next(held, held).empty());
  EXPECT_TRUE(Next(held, held).empty());
}

TEST_F(ChunkCutTest, WhatIsNotToBeHadCountsForNothing) {
  cut_.Want({{kLarge, 100}});
  for (int i = 0; i < 2 * ChunkCut::kAtOnce; ++i) {
    EXPECT_TRUE(Next({{kSmall, 16}}, {{kSmall, 15}}).empty());
  }
  EXPECT_FALSE(Next({{kSmall, 16}}, {{kSmall, 16}}).empty());
}

}  // namespace
}  // namespace mets::client
