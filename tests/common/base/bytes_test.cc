#include "common/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace mets {
namespace {

using ::testing::HasSubstr;

TEST(Bytes, CountsAndCompares) {
  EXPECT_EQ(MiB(1) + KiB(1), Bytes((1 << 20) + 1024));
  EXPECT_EQ(MiB(1) - MiB(2), Bytes(-(1 << 20)));
  EXPECT_EQ(3 * GiB(1), GiB(3));
  EXPECT_EQ(MiB(5) / MiB(2), 2);
  EXPECT_LT(KiB(1), MiB(1));
  EXPECT_TRUE(Bytes().is_zero());
}

TEST(Bytes, RoundsUp) {
  EXPECT_EQ(Bytes(1).RoundUpTo(KiB(64)), KiB(64));
  EXPECT_EQ(KiB(64).RoundUpTo(KiB(64)), KiB(64));
  EXPECT_EQ(Bytes(0).RoundUpTo(KiB(64)), Bytes(0));
  EXPECT_EQ(Bytes(7).RoundUpTo(Bytes(3)), Bytes(9));
  EXPECT_EQ(Bytes(9).RoundUpTo(Bytes(3)), Bytes(9));
  EXPECT_EQ(Bytes(7).RoundUpTo(Bytes(1)), Bytes(7));
}

TEST(Bytes, FormatsWithThreeDigits) {
  EXPECT_EQ(FormatBytes(Bytes(0)), "0 B");
  EXPECT_EQ(FormatBytes(Bytes(17)), "17 B");
  EXPECT_EQ(FormatBytes(Bytes(1000)), "1000 B");
  EXPECT_EQ(FormatBytes(KiB(64)), "64 KiB");
  EXPECT_EQ(FormatBytes(MiB(12) + KiB(512)), "12.5 MiB");
  EXPECT_EQ(FormatBytes(MiB(1) + KiB(256)), "1.25 MiB");
  EXPECT_EQ(FormatBytes(GiB(123)), "123 GiB");
  EXPECT_EQ(FormatBytes(MiB(1) - Bytes(1)), "1 MiB");
  EXPECT_EQ(FormatBytes(GiB(1024) * 5), "5 TiB");
  EXPECT_EQ(FormatBytes(Bytes(-2048)), "-2 KiB");
  EXPECT_EQ(FormatBytes(Bytes(std::numeric_limits<int64_t>::min())),
            "-8388608 TiB");
  std::ostringstream out;
  out << MiB(3);
  EXPECT_EQ(out.str(), "3 MiB");
}

TEST(Bytes, ReadsSizes) {
  EXPECT_EQ(*ParseBytes("4096"), Bytes(4096));
  EXPECT_EQ(*ParseBytes("0"), Bytes(0));
  EXPECT_EQ(*ParseBytes("64KiB"), KiB(64));
  EXPECT_EQ(*ParseBytes("192MiB"), MiB(192));
  EXPECT_EQ(*ParseBytes("12GiB"), GiB(12));
  EXPECT_EQ(*ParseBytes("1TiB"), GiB(1024));
  EXPECT_EQ(*ParseBytes("4611686018427387904"), Bytes(int64_t{1} << 62));
}

TEST(Bytes, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1", "-1MiB", "1.5GiB", "12GB", "12 GiB",
                           "GiB12", "+1", "4611686018427387905", "4194305TiB",
                           "99999999999999999999", "0x10", "1MiBMiB", "\n1"}) {
    absl::StatusOr<Bytes> size = ParseBytes(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(size.status()));
    EXPECT_THAT(size.status().message(), HasSubstr(text));
    EXPECT_THAT(size.status().message(), HasSubstr("192MiB"));
  }
}

}  // namespace
}  // namespace mets
