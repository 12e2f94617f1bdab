#include "common/base/duration_text.h"

#include <gtest/gtest.h>

namespace mets {
namespace {

TEST(DurationTextTest, ReadsAsPeopleSayIt) {
  EXPECT_EQ(DurationText(absl::Microseconds(850)), "850 us");
  EXPECT_EQ(DurationText(absl::Microseconds(1400)), "1.4 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(23)), "23 ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(4100)), "4.1 s");
  EXPECT_EQ(DurationText(absl::Seconds(3)), "3 s");
  EXPECT_EQ(DurationText(absl::Seconds(192)), "3 min 12 s");
  EXPECT_EQ(DurationText(absl::Minutes(125)), "2 h 5 min");
}

TEST(DurationTextTest, NeverRoundsToTheNextUnitsNumber) {
  EXPECT_EQ(DurationText(absl::Microseconds(999'700)), "1 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(59'800)), "1 min 0 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(9'960)), "10 s");
}

TEST(DurationTextTest, ExtremesHaveAText) {
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "forever");
  EXPECT_EQ(DurationText(-absl::Seconds(1)), "0 us");
  EXPECT_EQ(DurationText(absl::ZeroDuration()), "0 us");
}

}  // namespace
}  // namespace mets
