#include "daemon/sim/sim_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/trace/temp_file.h"

namespace mets::sim {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(SimCommandTest, ATraceArgumentHasAFileAndOptions) {
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

TEST(SimCommandTest, WrongOptionsAreNamed) {
  for (const char* option :
       {"start=-1", "start=soon", "priority=", "weight=0", "weight=1001",
        "wait=3", "start", "limit=x", "guarantee="}) {
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

// What mets-sim prints, and its exit status.
struct Printed {
  int status = 0;
  std::string out, err;
};

Printed MetsSim(std::vector<const char*> words) {
  words.insert(words.begin(), "mets-sim");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Printed run;
  run.status = RunMetsSim(static_cast<int>(words.size()), words.data());
  run.out = ::testing::internal::GetCapturedStdout();
  run.err = ::testing::internal::GetCapturedStderr();
  return run;
}

// Writes 8 MiB in half a second.
constexpr char kTrace[] =
    "# mets-trace 1 job=tiny\n"
    "t_us,op,block,bytes,name\n"
    "0,malloc,1,8388608,\n"
    "1000,begin,1,0,Make\n"
    "1000,write,1,8388608,\n"
    "501000,end,1,0,\n";

TEST(SimCommandTest, OneJobOnADeviceOfItsOwnTakesItsRecordedTime) {
  trace::TempFile file("a.csv");
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  const Printed run = MetsSim({"--trace", file.path().c_str(), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const char* text : {"\"device_bytes\": 8388608", "\"fairness\": 1.0",
                           "\"name\": \"tiny\"", "\"ideal_seconds\": 0.501",
                           "\"evicted_bytes\": 0", "\"peak_bytes\": 8388608"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
}

TEST(SimCommandTest, EachRepetitionsTimeIsSaid) {
  trace::TempFile file("a.csv");
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  const Printed run = MetsSim(
      {"--trace", file.path().c_str(), "--repeat", "2", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("\"repeat_seconds\": \\[[[:space:]]*"
                                     "0\\.50[0-9]*,[[:space:]]*0\\.50[0-9]*"
                                     "[[:space:]]*\\]"));
}

// `steps` times: a buffer is read for a second.
std::string TraceOfSteps(int steps) {
  std::string text =
      "# mets-trace 1 job=reader\n"
      "t_us,op,block,bytes,name\n"
      "0,malloc,1,8388608,\n"
      "0,begin,1,0,Make\n"
      "0,write,1,8388608,\n"
      "0,end,1,0,\n";
  for (int i = 0; i < steps; ++i) {
    absl::StrAppend(&text, i, "000000,begin,2,0,Use\n", i,
                    "000000,read,1,8388608,\n", i + 1, "000000,end,2,0,\n");
  }
  return absl::StrCat(text, "# end ", 4 + 3 * steps, "\n");
}

TEST(SimCommandTest, JobsThatFitTogetherShareTheDevicesTime) {
  trace::TempFile file("a.csv");
  file.Put(TraceOfSteps(10));
  const char* path = file.path().c_str();
  const Printed run = MetsSim(
      {"--trace", path, "--trace", path, "--device-memory", "200%", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"device_seconds\": 10.0"));
  EXPECT_THAT(run.out, HasSubstr("\"total_seconds\": 20.0"));
}

TEST(SimCommandTest, InputWorkThatHasNoStepIsRefused) {
  trace::TempFile file("a.csv");
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  const Printed run =
      MetsSim({"--trace", file.path().c_str(), "--input-work", "50"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("'tiny'"));
}

TEST(SimCommandTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(MetsSim({"--trace", "/nowhere/a.csv"}).status, 1);
  trace::TempFile file("a.csv");
  const char* path = file.path().c_str();
  file.Put(kTrace);
  const Printed cut = MetsSim({"--trace", path});
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.err, HasSubstr(file.path()));
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  const Printed policy = MetsSim({"--trace", path, "--policy", "best"});
  EXPECT_EQ(policy.status, 2);
  EXPECT_THAT(policy.err, HasSubstr("'best'"));
  const Printed small = MetsSim({"--trace", path, "--device-memory", "50%"});
  EXPECT_EQ(small.status, 1);
  EXPECT_THAT(small.err, HasSubstr("8 MiB"));
  EXPECT_NE(MetsSim({}).status, 0);
}

}  // namespace
}  // namespace mets::sim
