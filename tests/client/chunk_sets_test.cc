#include "client/src/chunk_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace mets::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ChunkSetsTest : public testing::Test {
 protected:
  ChunkSetsTest() {
    for (Chunk& chunk : chunks_) chunk.size = MiB(2);
  }
  ChunkSet Take(Bytes size, Bytes most = Bytes()) {
    return sets_.Take(size, std::max(size, most), [this](const Chunk& chunk) {
      return !used_.contains(&chunk);
    });
  }

  Chunk chunks_[4];
  absl::flat_hash_set<const Chunk*> used_;
  ChunkSets sets_;
};

TEST_F(ChunkSetsTest, TheLatestWhoseChunksAreFreeIsTakenOnce) {
  sets_.Remember({&chunks_[0], &chunks_[1]});
  sets_.Remember({&chunks_[1], &chunks_[2]});
  sets_.Remember({&chunks_[3], &chunks_[2]});
  used_.insert(&chunks_[3]);
  EXPECT_THAT(Take(MiB(4)), ElementsAre(&chunks_[1], &chunks_[2]));
  EXPECT_THAT(Take(MiB(4)), ElementsAre(&chunks_[0], &chunks_[1]));
  EXPECT_THAT(Take(MiB(4)), IsEmpty());
  used_.clear();
  EXPECT_THAT(Take(MiB(4)), ElementsAre(&chunks_[3], &chunks_[2]));
}

TEST_F(ChunkSetsTest, SomewhatLargerOnesDoWhereTheyMay) {
  sets_.Remember({&chunks_[0], &chunks_[1], &chunks_[2]});
  EXPECT_THAT(Take(MiB(4)), IsEmpty());
  EXPECT_THAT(Take(MiB(4), MiB(5)), IsEmpty());
  EXPECT_THAT(Take(MiB(4), MiB(6)), testing::SizeIs(3));
}

TEST_F(ChunkSetsTest, SetsOfAChunkThatGoesAwayAreForgotten) {
  sets_.Remember({&chunks_[0], &chunks_[1]});
  sets_.Remember({&chunks_[2], &chunks_[3]});
  sets_.Forget(&chunks_[1]);
  EXPECT_THAT(Take(MiB(4)), ElementsAre(&chunks_[2], &chunks_[3]));
  EXPECT_THAT(Take(MiB(4)), IsEmpty());
}

TEST_F(ChunkSetsTest, TheOldestAreForgottenWhenThereAreManyOfAllSizes) {
  sets_.Remember({&chunks_[0]});
  sets_.Remember({&chunks_[1], &chunks_[2]});
  for (size_t i = 0; i < ChunkSets::kMost - 1; ++i) {
    sets_.Remember({&chunks_[3]});
  }
  EXPECT_THAT(Take(MiB(4)), ElementsAre(&chunks_[1], &chunks_[2]));
  used_.insert(&chunks_[3]);
  EXPECT_THAT(Take(MiB(2)), IsEmpty());
}

}  // namespace
}  // namespace mets::client
