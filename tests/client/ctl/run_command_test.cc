#include "client/ctl/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace mets::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

RunOptions Options() {
  RunOptions options;
  options.command = {"true"};
  return options;
}

std::string ErrorOf(const RunOptions& options) {
  const auto environment = MakeEnvironment(options, "/run/mets", {}, "");
  EXPECT_TRUE(absl::IsInvalidArgument(environment.status()));
  return std::string(environment.status().message());
}

TEST(RunCommandTest, OnlyTheRunDirWhenNothingIsGiven) {
  EXPECT_THAT(*MakeEnvironment(Options(), "/run/x", {}, "/mine"),
              ElementsAre(Pair("METS_RUN_DIR", "/run/x")));
}

TEST(RunCommandTest, EveryOptionBecomesItsVariable) {
  RunOptions options = Options();
  options.job = "bert";
  options.limit = "2GiB";
  options.guarantee = "512MiB";
  options.priority = -3;
  options.weight = 4;
  options.wait = "forever";
  EXPECT_THAT(
      *MakeEnvironment(options, "/run/mets", {"/lib/plugin.so", "", ""}, ""),
      ElementsAre(Pair("METS_RUN_DIR", "/run/mets"), Pair("METS_JOB", "bert"),
                  Pair("METS_LIMIT", "2GiB"), Pair("METS_GUARANTEE", "512MiB"),
                  Pair("METS_PRIORITY", "-3"), Pair("METS_WEIGHT", "4"),
                  Pair("METS_WAIT", "forever"),
                  Pair("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "/lib/plugin.so")));
}

TEST(RunCommandTest, PythonFindsThePackageBeforeItsOwnPath) {
  const Installation installation{"", "/mets/python", "/mets/lib"};
  EXPECT_THAT(*MakeEnvironment(Options(), "/run/x", installation, ""),
              ElementsAre(Pair("METS_RUN_DIR", "/run/x"),
                          Pair("PYTHONPATH", "/mets/python"),
                          Pair("METS_LIBRARY_DIR", "/mets/lib")));
  EXPECT_THAT(*MakeEnvironment(Options(), "/run/x", installation, "/a:/b"),
              Contains(Pair("PYTHONPATH", "/mets/python:/a:/b")));
}

TEST(RunCommandTest, BadOptionsAreNamed) {
  RunOptions options = Options();
  options.job = "two words";
  EXPECT_THAT(ErrorOf(options), HasSubstr("two words"));
  options = Options();
  options.limit = "lots";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--limit"));
  options.limit = "10";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--limit: '10' is a limit of 10 B"));
  options = Options();
  options.guarantee = "-1";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--guarantee"));
  options = Options();
  options.wait = "later";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--wait"));
  options = Options();
  options.limit = "1GiB";
  options.guarantee = "2GiB";
  EXPECT_THAT(ErrorOf(options), HasSubstr("above --limit"));
}

TEST(RunCommandTest, AnotherPluginForTensorFlowIsAnError) {
  constexpr char kVariable[] = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH";
  setenv(kVariable, "/x/libother.so", 1);
  const absl::Status status = RunCommand(Options(), "/tmp/no-metsd-here");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/x/libother.so"));
  setenv(kVariable, "/y/libmets_tensorflow.so", 1);
  EXPECT_TRUE(absl::IsUnavailable(RunCommand(Options(), "/tmp/no-metsd-here")));
  unsetenv(kVariable);
}

TEST(RunCommandTest, NoDaemonIsAnErrorBeforeTheProgramStarts) {
  const absl::Status status = RunCommand(Options(), "/tmp/no-metsd-here");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("metsd --run-dir /tmp/no-metsd-here"));
}

}  // namespace
}  // namespace mets::ctl
