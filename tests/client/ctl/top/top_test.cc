// metsctl top without a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/ctl/top/top_model.h"
#include "client/ctl/top/top_view.h"

namespace mets::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kMiB = 1 << 20;

v1::JobStatus Job(const std::string& name, uint64_t resident_mib,
                  const std::string& phase = "computes") {
  v1::JobStatus job;
  job.set_name(name);
  job.set_device("host0");
  job.set_resident_bytes(resident_mib * kMiB);
  job.set_phase(phase);
  return job;
}

v1::GetStatusResponse ThreeJobs() {
  v1::GetStatusResponse status;
  status.set_version("1.0");
  status.set_policy("lru");
  status.set_uptime_seconds(192);
  v1::DeviceStatus& device = *status.add_devices();
  device.set_id("host0");
  device.set_pool_bytes(100 * kMiB);
  device.set_cached_bytes(10 * kMiB);
  device.set_free_bytes(20 * kMiB);
  *status.add_jobs() = Job("bert", 50);
  *status.add_jobs() = Job("resnet", 20, "waits_for_memory");
  *status.add_jobs() = Job("gpt", 0, "idle");
  return status;
}

std::vector<std::string> Names(const TopModel& model) {
  std::vector<std::string> names;
  for (const TopRow& row : model.Rows()) names.push_back(row.job);
  return names;
}

TopModel Updated() {
  TopModel model;
  model.Update(absl::UnixEpoch(), ThreeJobs());
  return model;
}

TEST(TopModelTest, SortsByAnyColumnBothWays) {
  TopModel model = Updated();
  EXPECT_THAT(Names(model), ElementsAre("bert", "resnet", "gpt"));
  model.Reverse();
  EXPECT_THAT(Names(model), ElementsAre("gpt", "resnet", "bert"));
  while (model.sort() != TopSort::kJob) model.MoveSort(-1);
  EXPECT_FALSE(model.descending());
  EXPECT_THAT(Names(model), ElementsAre("bert", "gpt", "resnet"));
  model.MoveSort(-1);
  EXPECT_EQ(model.sort(), TopSort::kSlowdown);  // Around the end.
}

TEST(TopModelTest, FiltersByNameAndState) {
  TopModel model = Updated();
  model.set_filter("WAITS");
  EXPECT_THAT(Names(model), ElementsAre("resnet"));
  model.set_filter("bert");
  EXPECT_THAT(Names(model), ElementsAre("bert"));
  EXPECT_THAT(PlainText(DrawTop(model, 100, 10, 0, "")),
              HasSubstr("1 of 3 jobs (filter: bert)"));
}

TEST(TopModelTest, TrafficIsWhatMovedBetweenTwoStates) {
  TopModel model = Updated();
  EXPECT_EQ(model.Rows()[0].traffic, 0);
  v1::GetStatusResponse next = ThreeJobs();
  next.mutable_jobs(0)->set_evicted_bytes_total(3 * kMiB);
  next.mutable_jobs(0)->set_restored_bytes_total(1 * kMiB);
  model.Update(absl::UnixEpoch() + absl::Seconds(2), next);
  EXPECT_EQ(model.Rows()[0].traffic, 2.0 * kMiB);
  // Its totals begin anew after a restart of metsd: no rate below zero.
  model.Update(absl::UnixEpoch() + absl::Seconds(3), ThreeJobs());
  EXPECT_EQ(model.Rows()[0].traffic, 0);
}

TEST(TopViewTest, ABarHasTheSharesOfAll) {
  TopModel model = Updated();
  const TopLine bar = DrawBar(model, model.status().devices(0), 50);
  std::string text;
  for (const TopSpan& span : bar) text += span.text;
  // Half, a fifth and a tenth of fifty; bert came first, so it is 'a'.
  EXPECT_EQ(text, std::string(25, 'a') + std::string(10, 'b') +
                      std::string(5, '~') + std::string(10, '.'));
}

TEST(TopViewTest, SharesComeBehindTheJobs) {
  v1::GetStatusResponse status = ThreeJobs();
  v1::ShareStatus& share = *status.add_shares();
  share.set_name("weights");
  share.set_device("host0");
  share.set_bytes(8 * kMiB);
  share.add_jobs("bert");
  share.add_jobs("gpt");
  share.set_payer("bert");
  TopModel model;
  model.Update(absl::UnixEpoch(), status);
  EXPECT_THAT(PlainText(DrawTop(model, 100, 10, 0, "")),
              HasSubstr("shared on host0: weights, 8 MiB, by bert, gpt; counts "
                        "for bert"));
}

TEST(TopViewTest, FitsAnySize) {
  TopModel model = Updated();
  for (int width : {1, 5, 20, 40, 79, 80, 132, 300}) {
    for (int height : {0, 1, 2, 5, 24, 60}) {
      const auto lines = DrawTop(model, width, height, 0, "");
      ASSERT_EQ(lines.size(), static_cast<size_t>(height));
      for (const TopLine& line : lines) {
        size_t size = 0;
        for (const TopSpan& span : line) size += span.text.size();
        EXPECT_LE(size, static_cast<size_t>(width)) << width << "x" << height;
      }
    }
  }
}

TEST(TopViewTest, NarrowTerminalsLoseTheLastColumnsFirst) {
  TopModel model = Updated();
  const std::string wide = PlainText(DrawTop(model, 132, 20, 0, ""));
  EXPECT_THAT(wide, HasSubstr("SLOWDOWN"));
  EXPECT_THAT(wide, HasSubstr("waits for memory"));
  EXPECT_THAT(wide, HasSubstr("up 3 min 12 s"));
  const std::string narrow = PlainText(DrawTop(model, 60, 20, 0, ""));
  EXPECT_THAT(narrow, HasSubstr("RESIDENT"));
  EXPECT_THAT(narrow, Not(HasSubstr("STEP")));
}

TEST(TopViewTest, ScrollingLeavesTheFirstJobsOut) {
  TopModel model = Updated();
  const std::string text = PlainText(DrawTop(model, 80, 20, 1, ""));
  EXPECT_THAT(text, Not(HasSubstr("bert")));
  EXPECT_THAT(text, HasSubstr("resnet"));
}

TEST(TopViewTest, ADaemonThatIsGoneIsSaid) {
  TopModel model = Updated();
  model.Fail("metsd does not answer: gone");
  EXPECT_THAT(PlainText(DrawTop(model, 80, 20, 0, "")),
              HasSubstr("metsd does not answer: gone"));
  model.Update(absl::UnixEpoch() + absl::Seconds(1), ThreeJobs());
  EXPECT_EQ(model.error(), "");
}

}  // namespace
}  // namespace mets::ctl
