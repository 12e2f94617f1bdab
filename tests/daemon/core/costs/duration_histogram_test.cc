#include "daemon/core/costs/duration_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::core {
namespace {

using ::testing::ElementsAre;

TEST(DurationHistogramTest, ABoundBelongsToItsBucket) {
  WaitHistogram waits;
  waits.Add(absl::ZeroDuration());
  waits.Add(absl::Milliseconds(10));
  waits.Add(absl::Milliseconds(11));
  waits.Add(absl::Minutes(5));
  EXPECT_THAT(waits.counts(), ElementsAre(2, 1, 0, 0, 1));
  EXPECT_EQ(waits.count(), 4);
  EXPECT_EQ(waits.sum(), absl::Milliseconds(21) + absl::Minutes(5));
}

TEST(DurationHistogramTest, HistogramsAddUp) {
  WaitHistogram a, b;
  a.Add(absl::Seconds(1));
  b.Add(absl::Seconds(1));
  b.Add(absl::Seconds(10));
  a.Add(b);
  EXPECT_THAT(a.counts(), ElementsAre(0, 0, 2, 1, 0));
  EXPECT_EQ(a.sum(), absl::Seconds(12));
}

}  // namespace
}  // namespace mets::core
