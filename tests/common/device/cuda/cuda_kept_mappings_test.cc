#include "common/device/cuda/cuda_kept_mappings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace mets {
namespace {

using Handles = std::vector<ChunkHandle>;

class CudaKeptMappingsTest : public testing::Test {
 protected:
  char* At(int i) { return memory_ + i; }
  void Add(int at, Handles chunks, bool released) {
    kept_.Add({At(at), MiB(2), std::move(chunks), {}, released});
  }
  static std::vector<char*> RangesOf(
      const std::vector<CudaKeptMapping>& mappings) {
    std::vector<char*> ranges;
    for (const CudaKeptMapping& m : mappings) ranges.push_back(m.range);
    return ranges;
  }

  static constexpr ChunkHandle kA{1}, kB{2}, kC{3};
  char memory_[10];
  CudaKeptMappings kept_;
};

TEST_F(CudaKeptMappingsTest, ReleasedRangesAreFoundByTheirChunksInOrder) {
  Add(0, {kA, kB}, /*released=*/true);
  Add(1, {kA, kC}, /*released=*/false);
  EXPECT_EQ(kept_.Reserve({kB, kA}), nullptr);
  EXPECT_EQ(kept_.Reserve({kA}), nullptr);
  EXPECT_EQ(kept_.Reserve({kA, kC}), nullptr) << "it is somebody's";
  EXPECT_EQ(kept_.Reserve({kA, kB}), At(0));
  EXPECT_EQ(kept_.Reserve({kA, kB}), nullptr) << "it is somebody's now";
  EXPECT_TRUE(kept_.Release(At(1)));
  EXPECT_EQ(kept_.Reserve({kA, kC}), At(1));
  EXPECT_FALSE(kept_.Release(At(2)));
}

TEST_F(CudaKeptMappingsTest, OneIsTakenByItsRange) {
  Add(0, {kA, kB}, /*released=*/false);
  EXPECT_FALSE(kept_.Take(At(1)).has_value());
  EXPECT_EQ(kept_.Take(At(0))->chunks, (Handles{kA, kB}));
  EXPECT_FALSE(kept_.Take(At(0)).has_value());
  EXPECT_TRUE(kept_.TakeWith(kA).empty());
}

TEST_F(CudaKeptMappingsTest, AllThatHaveAChunkAreTaken) {
  Add(0, {kA, kB}, /*released=*/true);
  Add(1, {kC, kB}, /*released=*/false);
  Add(2, {kC, kA}, /*released=*/true);
  EXPECT_THAT(RangesOf(kept_.TakeWith(kB)),
              testing::UnorderedElementsAre(At(0), At(1)));
  EXPECT_THAT(RangesOf(kept_.TakeAll()), testing::ElementsAre(At(2)));
}

TEST_F(CudaKeptMappingsTest, TheOldestReleasedOnesAreTakenBeyondSoMany) {
  for (int i = 0; i < 6; ++i) Add(i, {kA}, /*released=*/i != 1);
  EXPECT_THAT(RangesOf(kept_.TakeReleased(3)),
              testing::ElementsAre(At(0), At(2)));
  EXPECT_TRUE(kept_.TakeReleased(3).empty());
  EXPECT_EQ(kept_.TakeReleased(0).size(), 3u);
  EXPECT_THAT(RangesOf(kept_.TakeAll()), testing::ElementsAre(At(1)));
}

}  // namespace
}  // namespace mets
