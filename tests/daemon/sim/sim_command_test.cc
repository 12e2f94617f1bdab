#include "daemon/sim/sim_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/common/trace/temp_file.h"

namespace mets::sim {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  const Printed run =
      MetsSim({"--trace", file.path().c_str(), "--repeat", "2", "--json"});
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

// `steps` times: six buffers are written, then read and freed backwards.
std::string TraceOfTraining(int steps) {
  std::string rows;
  int events = 0, op = 0, time = 0;
  const auto add = [&](const char* what, int block, int bytes) {
    absl::StrAppend(&rows, time, ",", what, ",", block, ",", bytes, ",\n");
    ++events;
  };
  for (int i = 0; i < 12 * steps; ++i) {
    const int place = i % 12;
    const int buffer = 6 * (i / 12) + std::min(place, 11 - place);
    add("begin", ++op, 0);
    if (place < 6) add("malloc", buffer, 8 << 20);
    add(place < 6 ? "write" : "read", buffer, 8 << 20);
    time += 2000;
    add("end", op, 0);
    if (place >= 6) add("free", buffer, 8 << 20);
  }
  return absl::StrCat("# mets-trace 1 job=training\nt_us,op,block,bytes,name\n",
                      rows, "# end ", events, "\n");
}

// A number of a job, as --json has it.
double Of(const nlohmann::json& job, const char* key) {
  return job.at(key).get<double>();
}

TEST(SimCommandTest, AJobsTimesAddUpAndBytesThatComeBackHadLeft) {
  trace::TempFile file("a.csv");
  file.Put(TraceOfTraining(20));
  const std::string later = absl::StrCat(file.path(), ",start=0.1");
  const Printed run =
      MetsSim({"--trace", file.path().c_str(), "--trace", later.c_str(),
               "--device-memory", "40%", "--no-plans", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto all = nlohmann::json::parse(run.out);
  ASSERT_EQ(all.at("jobs").size(), 2u);
  for (const auto& job : all.at("jobs")) {
    EXPECT_NEAR(Of(job, "seconds"),
                Of(job, "ideal_seconds") + Of(job, "stall_seconds") +
                    Of(job, "gate_seconds") + Of(job, "shared_seconds") +
                    Of(job, "slowed_seconds"),
                1e-6);
    EXPECT_GE(Of(job, "stall_seconds"), Of(job, "wait_seconds"));
    EXPECT_GT(Of(job, "evicted_bytes"), 0);
    EXPECT_LE(Of(job, "evicted_bytes"), Of(job, "restored_bytes"));
  }
}

TEST(SimCommandTest, TimeCountsFromTheFirstStart) {
  trace::TempFile file("a.csv");
  file.Put(TraceOfSteps(10));
  const std::string late = absl::StrCat(file.path(), ",start=5");
  const Printed run = MetsSim({"--trace", late.c_str(), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NEAR(Of(nlohmann::json::parse(run.out), "total_seconds"), 10, 0.01);
}

TEST(SimCommandTest, NothingMayHappenForHours) {
  trace::TempFile file("a.csv"), residency("r.csv");
  file.Put(TraceOfSteps(10));
  const std::string late = absl::StrCat(file.path(), ",start=1e6");
  const Printed gap =
      MetsSim({"--trace", file.path().c_str(), "--trace", late.c_str(),
               "--residency", residency.path().c_str(), "--json"});
  ASSERT_EQ(gap.status, 0) << gap.err;
  EXPECT_NEAR(Of(nlohmann::json::parse(gap.out), "total_seconds"), 1'000'010,
              0.01);
  EXPECT_LT(residency.Get().size(), 200'000u);
  file.Put(TraceOfSteps(2));
  const Printed slow =
      MetsSim({"--trace", file.path().c_str(), "--time-scale", "1e3"});
  EXPECT_EQ(slow.status, 0) << slow.err;
}

TEST(SimCommandTest, JobsOfOneNameStayApartFromOneNamedSo) {
  trace::TempFile file("a.csv"), other("b.csv");
  file.Put(TraceOfSteps(2));
  other.Put(absl::StrReplaceAll(file.Get(), {{"reader", "reader-1"}}));
  const std::string limited = absl::StrCat(file.path(), ",guarantee=9MiB"),
                    same = absl::StrCat(other.path(), ",guarantee=9MiB");
  // One job would have one guarantee.
  const Printed run =
      MetsSim({"--trace", limited.c_str(), "--trace", limited.c_str(),
               "--trace", same.c_str(), "--device-memory", "20MiB"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("guarantee"));
}

TEST(SimCommandTest, AResultThatCannotBeWrittenIsAFailure) {
  trace::TempFile file("a.csv");
  file.Put(TraceOfSteps(2));
  for (const char* to : {"/dev/full", "/nowhere/r.csv"}) {
    const Printed run =
        MetsSim({"--trace", file.path().c_str(), "--residency", to});
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr(to));
    EXPECT_EQ(run.out, "");
  }
}

TEST(SimCommandTest, InputWorkThatHasNoStepIsRefused) {
  trace::TempFile file("a.csv");
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  const Printed run =
      MetsSim({"--trace", file.path().c_str(), "--input-work", "50"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("'tiny'"));
}

TEST(SimCommandTest, AWrongCommandLineIsTwoAndAllElseOne) {
  trace::TempFile file("a.csv");
  const char* path = file.path().c_str();
  const auto run = [path](std::vector<const char*> more) {
    more.insert(more.begin(), {"--trace", path});
    const Printed printed = MetsSim(std::move(more));
    EXPECT_THAT(printed.err, StartsWith("mets-sim: "));
    return printed.status;
  };
  EXPECT_EQ(run({}), 1);  // There is no such file.
  file.Put(kTrace);
  EXPECT_EQ(run({}), 1);  // Cut.
  file.Put(absl::StrCat(kTrace, "400000,end,1,0,\n# end 5\n"));
  EXPECT_EQ(run({}), 1);  // Time goes back.
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  EXPECT_EQ(run({"--device-memory", "50%"}), 1);
  EXPECT_EQ(run({"--device-memory", "half"}), 2);
  EXPECT_EQ(run({"--policy", "best"}), 2);
  EXPECT_EQ(run({"--bus-gbps", "0"}), 2);
  EXPECT_EQ(run({"--repeat", "x"}), 2);
  EXPECT_EQ(run({"--nonsense"}), 2);
  EXPECT_EQ(MetsSim({}).status, 2);
  EXPECT_EQ(MetsSim({"--trace", ""}).status, 2);
  const Printed help = MetsSim({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("exit status"));
}

TEST(SimCommandTest, WhatIsWrongIsSaid) {
  trace::TempFile file("a.csv");
  const char* path = file.path().c_str();
  file.Put(kTrace);
  EXPECT_THAT(MetsSim({"--trace", path}).err, HasSubstr(file.path()));
  file.Put(absl::StrCat(kTrace, "# end 4\n"));
  EXPECT_THAT(MetsSim({"--trace", path, "--policy", "best"}).err,
              AllOf(HasSubstr("'best'"), HasSubstr("belady")));
  EXPECT_THAT(MetsSim({"--trace", path, "--device-memory", "12"}).err,
              HasSubstr("a device of 12 B has no room for one chunk"));
  EXPECT_THAT(MetsSim({"--trace", path, "--device-memory", "50%"}).err,
              HasSubstr("8 MiB"));
  const std::string greedy = absl::StrCat(path, ",guarantee=1GiB");
  EXPECT_THAT(MetsSim({"--trace", greedy.c_str()}).err,
              AllOf(HasSubstr("1 GiB"), HasSubstr("guarantee")));
}

}  // namespace
}  // namespace mets::sim
