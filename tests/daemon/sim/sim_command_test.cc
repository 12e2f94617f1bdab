#include "daemon/sim/sim_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace mets::sim {
namespace {

using ::testing::HasSubstr;

TEST(SimCommandTest, ATraceArgumentHasAFileAndOptions) {
  const auto plain = ParseTraceArgument("a/b.csv.xz");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->file, "a/b.csv.xz");
  EXPECT_EQ(plain->weight, 1);
  const auto all = ParseTraceArgument("b.csv,start=1.5,priority=-2,weight=4");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->file, "b.csv");
  EXPECT_EQ(all->start, 1.5);
  EXPECT_EQ(all->priority, -2);
  EXPECT_EQ(all->weight, 4);
}

TEST(SimCommandTest, WrongOptionsAreNamed) {
  for (const char* option : {"start=-1", "start=soon", "priority=", "weight=0",
                             "weight=1001", "wait=3", "start"}) {
    const auto argument = ParseTraceArgument(absl::StrCat("a.csv,", option));
    EXPECT_TRUE(absl::IsInvalidArgument(argument.status())) << option;
    EXPECT_THAT(std::string(argument.status().message()),
                HasSubstr(absl::StrCat("'", option, "'")));
  }
}

TEST(SimCommandTest, DeviceMemoryIsASizeOrAPercentageOfThePeaks) {
  EXPECT_EQ(*ParseDeviceMemory("12GiB", MiB(1)), GiB(12));
  EXPECT_EQ(*ParseDeviceMemory("60%", MiB(100)), MiB(60));
  for (const char* text : {"0%", "-5%", "x%", "%", "", "many"}) {
    EXPECT_FALSE(ParseDeviceMemory(text, MiB(1)).ok()) << text;
  }
}

}  // namespace
}  // namespace mets::sim
