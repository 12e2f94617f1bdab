#include "daemon/core/session_table.h"

#include <gtest/gtest.h>

#include "daemon/core/costs/totals.h"

namespace mets::core {
namespace {

const absl::Time kStart = absl::UnixEpoch();

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
  table.Remove(SessionId(1), kStart);
  EXPECT_EQ(table.NextDrop(absl::Seconds(60)), kStart + absl::Seconds(60));
  table.DropEmptyJobs(kStart + absl::Seconds(59), absl::Seconds(60));
  ASSERT_NE(table.FindJob(DomainId(1), "x"), nullptr);
  EXPECT_EQ(table.FindJob(DomainId(1), "x")->devices[0].ended.evictions, 4);
  table.DropEmptyJobs(kStart + absl::Seconds(60), absl::Seconds(60));
  EXPECT_EQ(table.FindJob(DomainId(1), "x"), nullptr);
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
