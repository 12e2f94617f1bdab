#include "client/src/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

namespace mets::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class EnvTest : public testing::Test {
 protected:
  ~EnvTest() override {
    for (const char* name : {"METS_RUN_DIR", "METS_JOB", "METS_LIMIT",
                             "METS_GUARANTEE", "METS_PRIORITY", "METS_WEIGHT",
                             "METS_WAIT", "METS_PHANTOM_EVICTION"}) {
      unsetenv(name);
    }
  }
};

TEST_F(EnvTest, ReadsEveryVariable) {
  setenv("METS_RUN_DIR", "/tmp/x", 1);
  setenv("METS_JOB", "bert", 1);
  setenv("METS_LIMIT", "2GiB", 1);
  setenv("METS_GUARANTEE", "1048576", 1);
  setenv("METS_PRIORITY", "-3", 1);
  setenv("METS_WEIGHT", "4", 1);
  setenv("METS_WAIT", "90s", 1);
  setenv("METS_PHANTOM_EVICTION", "4KiB", 1);
  const auto settings = ReadSettings(nullptr);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->run_dir, "/tmp/x");
  EXPECT_EQ(settings->job, "bert");
  EXPECT_EQ(settings->limit, GiB(2));
  EXPECT_EQ(settings->guarantee, MiB(1));
  EXPECT_EQ(settings->priority, -3);
  EXPECT_EQ(settings->weight, 4);
  EXPECT_EQ(settings->wait, absl::Seconds(90));
  EXPECT_EQ(settings->phantom, KiB(4));
}

TEST_F(EnvTest, OptionsComeFirst) {
  setenv("METS_JOB", "bert", 1);
  mets_open_options options = METS_OPEN_OPTIONS_INIT;
  options.job = "gpt";
  options.limit_bytes = 5;
  const auto settings = ReadSettings(&options);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->job, "gpt");
  EXPECT_EQ(settings->limit, Bytes(5));
}

TEST_F(EnvTest, AProcessWithoutANameHasItsProgramsName) {
  const auto settings = ReadSettings(nullptr);
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->job, StartsWith("client_parts_test-"));
}

TEST_F(EnvTest, ErrorsNameTheVariableAndTheForms) {
  setenv("METS_LIMIT", "12 bananas", 1);
  EXPECT_THAT(ReadSettings(nullptr).status().message(),
              HasSubstr("METS_LIMIT"));
  unsetenv("METS_LIMIT");
  setenv("METS_PRIORITY", "high", 1);
  EXPECT_THAT(ReadSettings(nullptr).status().message(), HasSubstr("'high'"));
  unsetenv("METS_PRIORITY");
  setenv("METS_WEIGHT", "0", 1);
  EXPECT_THAT(ReadSettings(nullptr).status().message(), HasSubstr("1000"));
  unsetenv("METS_WEIGHT");
  setenv("METS_JOB", "a job", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadSettings(nullptr).status()));
}

TEST_F(EnvTest, WaitsAreDurationsOrWords) {
  EXPECT_EQ(*ParseWait("forever"), absl::InfiniteDuration());
  EXPECT_EQ(*ParseWait("fail"), absl::ZeroDuration());
  EXPECT_EQ(*ParseWait("1m30s"), absl::Seconds(90));
  EXPECT_THAT(ParseWait("soon").status().message(), HasSubstr("forever"));
  EXPECT_FALSE(ParseWait("-1s").ok());
}

}  // namespace
}  // namespace mets::client
