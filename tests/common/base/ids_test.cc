#include "common/base/ids.h"

#include <gtest/gtest.h>

#include <sstream>
#include <type_traits>

#include "absl/container/flat_hash_set.h"

namespace mets {
namespace {

static_assert(!std::is_convertible_v<ChunkId, BufferId>);
static_assert(!std::is_convertible_v<uint64_t, ChunkId>);

TEST(Id, ZeroIsNone) {
  EXPECT_FALSE(ChunkId().ok());
  EXPECT_TRUE(ChunkId(1).ok());
}

TEST(Id, ComparesHashesAndPrints) {
  EXPECT_LT(ChunkId(1), ChunkId(2));
  EXPECT_NE(ChunkId(1), ChunkId(2));
  absl::flat_hash_set<ChunkId> ids = {ChunkId(1), ChunkId(2), ChunkId(1)};
  EXPECT_EQ(ids.size(), 2u);
  std::ostringstream out;
  out << ChunkId(17);
  EXPECT_EQ(out.str(), "17");
}

}  // namespace
}  // namespace mets
