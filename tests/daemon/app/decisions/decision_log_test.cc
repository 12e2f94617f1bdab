#include "daemon/app/decisions/decision_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "daemon/app/decisions/event_journal.h"

namespace mets::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kAll = 1 << 20;

core::Event Made(core::EventKind kind, const std::string& job,
                 absl::Time time = absl::UnixEpoch()) {
  core::Event event;
  event.kind = kind;
  event.job = job;
  event.device = "host0";
  event.time = time;
  return event;
}

TEST(DecisionLogTest, NewestComeInOrderAndOfOneJobIfAsked) {
  DecisionLog log;
  log.Add({Made(core::EventKind::kAttached, "a"),
           Made(core::EventKind::kTurn, "b"),
           Made(core::EventKind::kAttached, "b")});
  core::Event evicted = Made(core::EventKind::kEvicted, "a");
  evicted.for_job = "b";
  log.Add({evicted});
  const auto all = log.Recent(0, "", kAll);
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].number, i + 1);
  EXPECT_EQ(log.Recent(0, "b", kAll).size(), 3u);  // Also what is for it.
  EXPECT_EQ(log.Recent(2, "", kAll).size(), 2u);
  EXPECT_EQ(log.Recent(0, "a", 1).back().number, 4u);
}

TEST(DecisionLogTest, MemoryIsBoundedAndDetailsPushNothingOut) {
  DecisionLogOptions options;
  options.decisions = KiB(8);
  options.details = KiB(8);
  options.burst = 1e9;
  DecisionLog log(options);
  log.Add({Made(core::EventKind::kAttached, "a")});
  for (int i = 0; i < 10000; ++i) log.Add({Made(core::EventKind::kTurn, "a")});
  const auto kept = log.Recent(0, "", kAll);
  EXPECT_LT(kept.size(), 60u);
  EXPECT_GT(kept.size(), 10u);
  EXPECT_EQ(kept.front().event.kind, core::EventKind::kAttached);
  EXPECT_EQ(kept.back().number, 10001u);
}

TEST(DecisionLogTest, AJobThatSaysTooMuchIsCutAndOthersAreNot) {
  DecisionLogOptions options;
  options.burst = 10;
  options.per_second = 5;
  DecisionLog log(options);
  for (int i = 0; i < 100; ++i) {
    log.Add({Made(core::EventKind::kDenied, "loud")});
  }
  log.Add({Made(core::EventKind::kDenied, "calm")});
  EXPECT_EQ(log.Recent(0, "loud", kAll).size(), 10u);
  EXPECT_EQ(log.Recent(0, "calm", kAll).size(), 1u);
  EXPECT_EQ(log.dropped(), 90);
  log.Add({Made(core::EventKind::kDenied, "loud",
                absl::UnixEpoch() + absl::Seconds(1))});
  EXPECT_EQ(log.Recent(0, "loud", kAll).size(), 11u);
}

TEST(DecisionLogTest, AJobsMovesDoNotKeepItsDenialOut) {
  DecisionLogOptions options;
  options.burst = 10;
  DecisionLog log(options);
  for (int i = 0; i < 100; ++i) {
    log.Add({Made(core::EventKind::kEvicted, "a"),
             Made(core::EventKind::kTurn, "a")});
  }
  log.Add({Made(core::EventKind::kDenied, "a")});
  EXPECT_EQ(log.Recent(0, "a", kAll).back().event.kind,
            core::EventKind::kDenied);
}

TEST(DecisionLogTest, WatchersAreWoken) {
  DecisionLog log;
  absl::Notification woken;
  const uint64_t watch = log.Watch([&] {
    if (!woken.HasBeenNotified()) woken.Notify();
  });
  log.Add({Made(core::EventKind::kAttached, "a")});
  EXPECT_TRUE(woken.WaitForNotificationWithTimeout(absl::Seconds(20)));
  log.Unwatch(watch);
}

// The journal's lines, once an event of job "last" is among them.
std::string Written(std::vector<core::Event> events) {
  std::ostringstream text;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  spdlog::logger logger("test", sink);
  DecisionLog log;
  absl::Notification written;
  {
    EventJournal journal(log, logger);
    // Watchers are called in the order of their numbers.
    const uint64_t watch = log.Watch([&] {
      const bool last = !log.Recent(0, "last", kAll).empty();
      if (last && !written.HasBeenNotified()) written.Notify();
    });
    events.push_back(Made(core::EventKind::kAttached, "last",
                          absl::UnixEpoch() + absl::Hours(1)));
    log.Add(std::move(events));
    EXPECT_TRUE(written.WaitForNotificationWithTimeout(absl::Seconds(20)));
    log.Unwatch(watch);
  }
  return text.str();
}

TEST(EventJournalTest, ADenialIsWrittenWholeAndTurnsAreNot) {
  core::Event denied = Made(core::EventKind::kDenied, "a");
  denied.text = "first line\nHolders:\n  job 'b'";
  const std::string text =
      Written({denied, Made(core::EventKind::kTurn, "turner")});
  EXPECT_THAT(text, HasSubstr("host0: denied: first line\nHolders:"));
  EXPECT_THAT(text, HasSubstr("warning"));
  EXPECT_THAT(text, Not(HasSubstr("turner")));
}

TEST(EventJournalTest, AFloodIsCutAndCounted) {
  std::vector<core::Event> events;
  for (int i = 0; i < 200; ++i) {
    events.push_back(Made(core::EventKind::kEnded, "a"));
  }
  const std::string text = Written(std::move(events));
  EXPECT_THAT(text, HasSubstr("150 events were left out here"));
}

TEST(EventJournalTest, MovesKeepNoDenialOut) {
  std::vector<core::Event> events;
  for (int second = 0; second < 600; ++second) {
    const absl::Time time = absl::UnixEpoch() + absl::Seconds(second);
    for (int i = 0; i < 10; ++i) {
      events.push_back(Made(core::EventKind::kEvicted, "mover", time));
    }
    if (second % 60 != 30) continue;
    events.push_back(Made(core::EventKind::kDenied, "a", time));
    events.back().text = "the whole report";
  }
  const std::string text = Written(std::move(events));
  const auto lines = [&text](absl::string_view part) {
    return std::vector<std::string>(absl::StrSplit(text, part)).size() - 1;
  };
  EXPECT_EQ(lines("the whole report"), 10u);
  EXPECT_GT(lines("'mover'"), 100u);
  EXPECT_LT(lines("'mover'"), 120u);
}

}  // namespace
}  // namespace mets::app
