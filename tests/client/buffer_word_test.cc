#include "client/src/buffer_word.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace mets::client {
namespace {

class BufferWordTest : public testing::Test {
 protected:
  BufferWordTest() { word_.TryMove(Phase::kFree, Phase::kResident); }
  bool Pin() {
    bool claim = false;
    return word_.TryPin(&claim);
  }
  BufferWord word_;
};

TEST_F(BufferWordTest, OnlyResidentBuffersArePinned) {
  EXPECT_TRUE(Pin());
  word_.Unpin();
  ASSERT_TRUE(word_.TryStartEviction());
  EXPECT_FALSE(Pin());
  EXPECT_FALSE(word_.pinned());
  EXPECT_TRUE(word_.TryMove(Phase::kBlocking, Phase::kEvicting));
  EXPECT_TRUE(word_.TryMove(Phase::kEvicting, Phase::kUnmapping));
  EXPECT_TRUE(word_.TryMove(Phase::kUnmapping, Phase::kSwapped));
  EXPECT_FALSE(Pin());
  EXPECT_TRUE(word_.TryMove(Phase::kSwapped, Phase::kRestoring));
  EXPECT_TRUE(word_.TryMove(Phase::kRestoring, Phase::kResident, 1));
  EXPECT_TRUE(word_.pinned());
}

TEST_F(BufferWordTest, APinKeepsTheEvictorAway) {
  ASSERT_TRUE(Pin());
  EXPECT_FALSE(word_.TryStartEviction());
  word_.Unpin();
  EXPECT_TRUE(word_.TryStartEviction());
}

TEST_F(BufferWordTest, AnEvictionThatWasResumedIsNotCommitted) {
  ASSERT_TRUE(word_.TryStartEviction());
  ASSERT_TRUE(word_.TryMove(Phase::kBlocking, Phase::kEvicting));
  ASSERT_TRUE(word_.TryMove(Phase::kEvicting, Phase::kResuming));
  ASSERT_TRUE(word_.TryMove(Phase::kResuming, Phase::kResident));
  EXPECT_FALSE(word_.TryMove(Phase::kEvicting, Phase::kUnmapping));
}

TEST_F(BufferWordTest, APinnedBufferIsClaimedAfterItsLastUnpin) {
  Phase was;
  ASSERT_TRUE(Pin());
  ASSERT_TRUE(Pin());
  EXPECT_TRUE(word_.MarkFreed());
  EXPECT_FALSE(word_.TryClaim(&was));
  EXPECT_FALSE(word_.Unpin());
  EXPECT_TRUE(word_.Unpin());
  EXPECT_TRUE(word_.TryClaim(&was));
  EXPECT_EQ(was, Phase::kResident);
  EXPECT_FALSE(word_.TryClaim(&was));
}

TEST_F(BufferWordTest, WithNoPinsButTheCallersABufferEndsAtOnce) {
  ASSERT_TRUE(Pin());
  EXPECT_FALSE(word_.TryEnd(0));
  EXPECT_TRUE(word_.TryEnd(1));
  EXPECT_EQ(word_.phase(), Phase::kFree);
  EXPECT_FALSE(word_.TryEnd(0));
  EXPECT_FALSE(word_.MarkFreed());

  ASSERT_TRUE(word_.TryMove(Phase::kFree, Phase::kResident));
  ASSERT_TRUE(word_.TryStartEviction());
  EXPECT_FALSE(word_.TryEnd(0));
  ASSERT_TRUE(word_.TryMove(Phase::kBlocking, Phase::kResident));
  ASSERT_TRUE(word_.MarkFreed());
  EXPECT_FALSE(word_.TryEnd(0));
}

TEST_F(BufferWordTest, ABufferIsFreedOnce) {
  Phase was;
  EXPECT_TRUE(word_.MarkFreed());
  EXPECT_FALSE(word_.MarkFreed());
  ASSERT_TRUE(word_.TryClaim(&was));
  EXPECT_FALSE(word_.MarkFreed());
  EXPECT_FALSE(word_.freed());
}

TEST_F(BufferWordTest, FreedBuffersAreNotPinned) {
  ASSERT_TRUE(word_.MarkFreed());
  bool claim = false;
  EXPECT_FALSE(word_.TryPin(&claim));
  EXPECT_TRUE(claim);
}

// A pin and an eviction never both succeed.
TEST_F(BufferWordTest, PinsAndEvictionsExcludeEachOther) {
  // Both sides go on until each had its share, however the machine schedules
  // them.
  constexpr int kEnough = 20000;
  std::atomic<int> value{0};
  std::atomic<int> pins{0};
  std::atomic<int> evictions{0};
  auto enough = [&] { return pins >= kEnough && evictions >= kEnough; };
  std::thread evictor([&] {
    while (!enough()) {
      if (!word_.TryStartEviction()) {
        std::this_thread::yield();
        continue;
      }
      value = 1;
      value = 0;
      ++evictions;
      word_.TryMove(Phase::kBlocking, Phase::kResident);
    }
  });
  int wrong = 0;
  while (!enough()) {
    if (!Pin()) {
      std::this_thread::yield();
      continue;
    }
    ++pins;
    if (value != 0) ++wrong;
    word_.Unpin();
  }
  evictor.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(word_.pinned());
}

}  // namespace
}  // namespace mets::client
