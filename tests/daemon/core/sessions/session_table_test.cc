#include "daemon/core/sessions/session_table.h"

#include <gtest/gtest.h>

#include "daemon/core/costs/totals.h"

namespace mets::core {
namespace {

const absl::Time kNow = absl::UnixEpoch();

TEST(SessionTableTest, SessionsOfOneDomainAndNameFormAJob) {
  SessionTable table(1);
  Session& a = table.Add(SessionId(1), DomainId(1), "x");
  Session& b = table.Add(SessionId(2), DomainId(1), "x");
  Session& c = table.Add(SessionId(3), DomainId(2), "x");
  EXPECT_EQ(a.job, b.job);
  EXPECT_NE(a.job, c.job);
  a.holdings[0].chunk_bytes = MiB(2);
  b.holdings[0].orphan = MiB(3);
  a.job->devices[0].pending = MiB(1);
  EXPECT_EQ(table.JobBytes(*a.job, 0), MiB(6));
}

TEST(SessionTableTest, AJobOutlivesItsLastSessionForAWhile) {
  SessionTable table(1);
  table.Add(SessionId(1), DomainId(1), "x").holdings[0].totals.evictions = 4;
  table.Remove(SessionId(1), kNow);
  EXPECT_EQ(table.NextDrop(absl::Seconds(60)), kNow + absl::Seconds(60));
  table.DropEmptyJobs(kNow + absl::Seconds(59), absl::Seconds(60), 9);
  ASSERT_NE(table.FindJob(DomainId(1), "x"), nullptr);
  EXPECT_EQ(table.FindJob(DomainId(1), "x")->devices[0].ended.evictions, 4);
  table.DropEmptyJobs(kNow + absl::Seconds(60), absl::Seconds(60), 9);
  EXPECT_EQ(table.FindJob(DomainId(1), "x"), nullptr);
}

TEST(SessionTableTest, OfADomainTheNewestEmptyJobsAreKept) {
  SessionTable table(1);
  for (uint64_t i = 1; i <= 5; ++i) {
    table.Add(SessionId(i), DomainId(1), std::string(1, 'a' + i));
    table.Remove(SessionId(i), kNow + absl::Seconds(10 - i));
  }
  table.Add(SessionId(6), DomainId(2), "other");
  table.Remove(SessionId(6), kNow);
  // One comes back: it is not empty.
  table.Add(SessionId(7), DomainId(1), "b");
  table.DropEmptyJobs(kNow + absl::Seconds(10), absl::Seconds(60), 2);
  EXPECT_EQ(table.jobs().size(), 4u);
  for (const char* kept : {"b", "c", "d"}) {
    EXPECT_NE(table.FindJob(DomainId(1), kept), nullptr) << kept;
  }
  EXPECT_NE(table.FindJob(DomainId(2), "other"), nullptr);
}

TEST(SessionTableTest, TotalsNeverGoBack) {
  Totals totals;
  totals.evicted = MiB(4);
  totals.restores = 2;
  Totals report;
  report.evicted = MiB(1);
  report.restores = 3;
  RaiseTotals(report, &totals);
  EXPECT_EQ(totals.evicted, MiB(4));
  EXPECT_EQ(totals.restores, 3);
}

}  // namespace
}  // namespace mets::core
