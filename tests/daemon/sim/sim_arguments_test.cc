#include "daemon/sim/sim_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SimArgumentsTest, ATraceArgumentHasAFileAndOptions) {
  const auto plain = ParseTraceArgument("a/b.csv.xz");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->file, "a/b.csv.xz");
  EXPECT_EQ(plain->weight, 1);
  EXPECT_EQ(plain->limit, Bytes());
  const auto all = ParseTraceArgument(
      "b.csv,start=1.5,priority=-2,weight=4,limit=3MiB,guarantee=2MiB");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->file, "b.csv");
  EXPECT_EQ(all->start, 1.5);
  EXPECT_EQ(all->priority, -2);
  EXPECT_EQ(all->weight, 4);
  EXPECT_EQ(all->limit, MiB(3));
  EXPECT_EQ(all->guarantee, MiB(2));
}

TEST(SimArgumentsTest, WrongOptionsAreNamed) {
  for (const char* option :
       {"start=-1", "start=soon", "start=inf", "start=nan", "start=2e6",
        "priority=", "priority=1001", "weight=0", "weight=1001", "wait=3",
        "start", "limit=x", "limit=0", "guarantee=", "b.csv", ""}) {
    const auto argument = ParseTraceArgument(absl::StrCat("a.csv,", option));
    EXPECT_TRUE(absl::IsInvalidArgument(argument.status())) << option;
    EXPECT_THAT(std::string(argument.status().message()),
                HasSubstr(absl::StrCat("'", option, "'")));
  }
}

TEST(SimArgumentsTest, DeviceMemoryIsASizeOrAPercentageOfThePeaks) {
  EXPECT_EQ(*ParseDeviceMemory("12GiB", MiB(1)), GiB(12));
  EXPECT_EQ(*ParseDeviceMemory("60%", MiB(100)), MiB(60));
  for (const char* text : {"0%", "-5%", "x%", "%", "", "many"}) {
    EXPECT_FALSE(ParseDeviceMemory(text, MiB(1)).ok()) << text;
  }
}

TEST(SimArgumentsTest, NumbersOutsideTheirRangeAreNamed) {
  for (const auto& [option, value] :
       {std::pair("--bus-gbps", "0"), std::pair("--bus-gbps", "inf"),
        std::pair("--bus-gbps", "12x"), std::pair("--moves", "0"),
        std::pair("--moves", "99999999999"), std::pair("--repeat", "0"),
        std::pair("--input-work", "nan"), std::pair("--input-work", "100"),
        std::pair("--interference-bound", "nan"), std::pair("--quantum", "inf"),
        std::pair("--quantum", "-1"), std::pair("--time-scale", "1e300"),
        std::pair("--time-scale", "nan"), std::pair("--accelerate", "0")}) {
    const char* const words[] = {"mets-sim", "--trace", "a.csv", option, value};
    const auto arguments = ParseArguments(5, words);
    EXPECT_TRUE(absl::IsInvalidArgument(arguments.status()))
        << option << " " << value;
    EXPECT_THAT(
        std::string(arguments.status().message()),
        StartsWith(absl::StrCat(option, ": '", value, "' is no number from ")));
  }
}

TEST(SimArgumentsTest, FractionsOfCountsAreRefused) {
  for (const char* option : {"--moves", "--repeat"}) {
    const char* const words[] = {"mets-sim", "--trace", "a.csv", option, "2.5"};
    EXPECT_TRUE(absl::IsInvalidArgument(ParseArguments(5, words).status()));
  }
}

}  // namespace
}  // namespace mets::sim
