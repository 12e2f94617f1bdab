#include "daemon/app/recovery/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/process.h"
#include "daemon/app/recovery/recovery.h"
#include "daemon/app/recovery/state_writer.h"

namespace mets::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    path_ = dir_ + "/state.json";
  }
  ~StateFileTest() override { std::filesystem::remove_all(dir_); }

  static SavedState Sample() {
    SavedState state;
    state.epoch = Epoch(0xffffffffffff);
    state.swap = MiB(3);
    state.sessions.push_back({SessionId(4),
                              DomainId(1001),
                              "bert",
                              1000,
                              getpid(),
                              *ProcessStartTime(getpid()),
                              {{"host0", MiB(5)}, {"host1", Bytes()}}});
    state.settings.drained = {"host1"};
    state.settings.jobs = {{DomainId(1001), "bert", true, std::nullopt},
                           {DomainId(1001), "gpt", false, MiB(7)}};
    return state;
  }

  std::string dir_;
  std::string path_;
};

TEST_F(StateFileTest, StateSurvivesTheRoundTrip) {
  const SavedState state = Sample();
  ASSERT_TRUE(StoreText(path_, FormatState(state)).ok());
  const auto loaded = LoadState(path_);
  ASSERT_TRUE(loaded.ok() && loaded->has_value()) << loaded.status();
  EXPECT_EQ((*loaded)->epoch, state.epoch);
  EXPECT_EQ((*loaded)->swap, state.swap);
  ASSERT_EQ((*loaded)->sessions.size(), 1u);
  const RecordedSession& session = (*loaded)->sessions[0];
  EXPECT_EQ(session.session, SessionId(4));
  EXPECT_EQ(session.domain, DomainId(1001));
  EXPECT_EQ(session.job, "bert");
  EXPECT_EQ(session.uid, 1000u);
  EXPECT_EQ(session.pid, getpid());
  EXPECT_EQ(session.start_time, state.sessions[0].start_time);
  EXPECT_EQ(session.held, state.sessions[0].held);
  EXPECT_THAT((*loaded)->settings.drained, ElementsAre("host1"));
  ASSERT_EQ((*loaded)->settings.jobs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const core::OperatorSettings::Job& job = (*loaded)->settings.jobs[i];
    EXPECT_EQ(job.domain, state.settings.jobs[i].domain);
    EXPECT_EQ(job.name, state.settings.jobs[i].name);
    EXPECT_EQ(job.paused, state.settings.jobs[i].paused);
    EXPECT_EQ(job.limit, state.settings.jobs[i].limit);
  }
}

TEST_F(StateFileTest, AnEarlierVersionsFileHasNoSettings) {
  const auto state =
      ParseState(R"({"version":1,"epoch":1,"swap_bytes":0,"sessions":[]})");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->settings.empty());
}

TEST_F(StateFileTest, MissingFileIsNoError) {
  const auto loaded = LoadState(path_);
  ASSERT_TRUE(loaded.ok());
  EXPECT_FALSE(loaded->has_value());
}

TEST_F(StateFileTest, DamagedTextIsAnError) {
  const std::string good = FormatState(Sample());
  EXPECT_TRUE(ParseState(good).ok());
  for (size_t size = 0; size < good.size() - 1; size += 7) {
    EXPECT_FALSE(ParseState(good.substr(0, size)).ok()) << size;
  }
  for (const char* text :
       {"[]", "{}", "{\"version\": 2}", "{\"version\": -1}",
        "{\"version\":1,\"epoch\":1,\"swap_bytes\":0,\"sessions\":[7]}",
        "{\"version\":1,\"epoch\":1,\"swap_bytes\":0,\"sessions\":{}}",
        R"({"version":1,"epoch":1,"swap_bytes":0,"sessions":[],
            "operator":{"drained":[1],"jobs":[]}})",
        R"({"version":1,"epoch":1,"swap_bytes":0,"sessions":[],
            "operator":{"drained":[],"jobs":[{"domain":1,"job":"a"}]}})"}) {
    EXPECT_FALSE(ParseState(text).ok()) << text;
  }
}

TEST_F(StateFileTest, NextEpochAndSessionsFollowTheRecord) {
  ASSERT_TRUE(StoreText(path_, FormatState(Sample())).ok());
  const Recovery recovery = Recover(path_);
  EXPECT_EQ(recovery.warning, "");
  EXPECT_EQ(recovery.epoch, Epoch(0x1000000000000));
  EXPECT_EQ(recovery.first_session, SessionId(5));
  ASSERT_EQ(recovery.sessions.size(), 1u);
  EXPECT_TRUE(recovery.sessions[0].pidfd.ok());
  EXPECT_THAT(recovery.held,
              ElementsAre(Pair("host0", MiB(5)), Pair("host1", Bytes())));
  EXPECT_EQ(recovery.held_swap, MiB(3));
}

TEST_F(StateFileTest, ReusedPidIsAnotherProcess) {
  SavedState state = Sample();
  state.sessions[0].start_time += 1;
  ASSERT_TRUE(StoreText(path_, FormatState(state)).ok());
  const Recovery recovery = Recover(path_);
  EXPECT_TRUE(recovery.sessions.empty());
  EXPECT_THAT(recovery.held, IsEmpty());
  EXPECT_EQ(recovery.held_swap, Bytes());
  EXPECT_EQ(recovery.first_session, SessionId(5));
}

TEST_F(StateFileTest, UnusableFileGivesAWarningAndARandomEpoch) {
  std::ofstream(path_) << "nonsense";
  const Recovery first = Recover(path_);
  const Recovery second = Recover(path_);
  EXPECT_THAT(first.warning, HasSubstr(path_));
  EXPECT_TRUE(first.epoch.ok());
  EXPECT_NE(first.epoch, second.epoch);
}

TEST_F(StateFileTest, WriterWritesWhatChangedAndStopsWithTheLastText) {
  std::atomic<int> value{1};
  StateWriter::Options options;
  options.path = path_;
  options.render = [&] { return std::to_string(value.load()); };
  options.on_outcome = [](const absl::Status& s) { ADD_FAILURE() << s; };
  StateWriter writer(options);
  writer.Changed(/*urgent=*/true);
  value = 2;
  writer.Changed(/*urgent=*/false);
  value = 3;
  writer.Stop();
  std::ifstream file(path_);
  std::string text;
  file >> text;
  EXPECT_EQ(text, "3");
}

TEST_F(StateFileTest, WriterReportsAFailureOnce) {
  std::atomic<int> errors{0};
  std::atomic<int> value{0};
  StateWriter::Options options;
  options.path = dir_ + "/no/state.json";
  options.render = [&] { return std::to_string(++value); };
  options.on_outcome = [&](const absl::Status&) { ++errors; };
  StateWriter writer(options);
  writer.Changed(true);
  writer.Changed(true);
  writer.Stop();
  EXPECT_EQ(errors, 1);
}

TEST_F(StateFileTest, WriterTriesAgainByItselfAndSaysWhenItHasSucceeded) {
  absl::Notification failed, written;
  StateWriter::Options options;
  options.path = dir_ + "/later/state.json";
  options.retry = absl::Milliseconds(1);
  options.render = [] { return "text"; };
  options.on_outcome = [&](const absl::Status& s) {
    (s.ok() ? written : failed).Notify();
  };
  StateWriter writer(options);
  writer.Changed(true);
  failed.WaitForNotification();
  std::filesystem::create_directory(dir_ + "/later");
  EXPECT_TRUE(written.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_TRUE(std::filesystem::exists(options.path));
}

TEST_F(StateFileTest, WriterPutsARemovedFileBack) {
  StateWriter::Options options;
  options.path = path_;
  options.render = [] { return "text"; };
  options.on_outcome = [](const absl::Status& s) { ADD_FAILURE() << s; };
  StateWriter writer(options);
  writer.Changed(true);
  while (!std::filesystem::remove(path_)) absl::SleepFor(absl::Milliseconds(1));
  writer.Changed(true);
  writer.Stop();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(StateFileTest, AWriteThatFailsLeavesNothingBehind) {
  std::filesystem::create_directory(path_);  // Cannot be replaced.
  EXPECT_FALSE(StoreText(path_, "text").ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

}  // namespace
}  // namespace mets::app
