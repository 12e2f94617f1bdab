#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/trace/trace_reader.h"
#include "tests/common/steps/trace_feed.h"

namespace mets::steps {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Pair;

struct Found {
  uint64_t ops = 0;
  uint64_t first = 0;                    // Where a step was known first.
  uint64_t known = 0;                    // Ops at which one was...
  std::map<uint32_t, uint64_t> lengths;  // ...and how long it was.
  uint64_t steps = 0;
  StepSummary summary;
  StepProgram program;  // The last one.
};

Found FindStep(const std::string& path) {
  Found found;
  const absl::StatusOr<trace::Trace> trace = trace::ReadTrace(path);
  if (!trace.ok()) {
    ADD_FAILURE() << trace.status();
    return found;
  }
  StepRecorder recorder;
  TraceFeed(*trace, &recorder).Run([&] {
    ++found.ops;
    if (recorder.point().signature == 0) return;
    if (found.known == 0) found.first = found.ops;
    ++found.known;
    ++found.lengths[recorder.point().length];
    if (recorder.program() == nullptr) return;
    found.summary = recorder.summary();
    if (found.program.signature != recorder.program()->signature) {
      found.program = *recorder.program();
    }
  });
  found.steps = recorder.point().steps;
  return found;
}

// 20 steps, from a GPU. Each access is an op here, and some writes come more
// or less often in each of them.
TEST(RecordedTracesTest, StepOfSingaVggIsFound) {
  const Found found = FindStep(METS_TRACES "/singa-vgg-cifar-access.csv.xz");
  EXPECT_EQ(found.steps, 20);
  EXPECT_LE(found.first, 2.2 * 1796);
  EXPECT_GE(found.known + 50, found.ops - found.first);
  EXPECT_THAT(found.lengths, ElementsAre(Pair(1796, found.known)));
  EXPECT_NEAR(found.program.ops.size(), 1796, 1796 / 16);
  EXPECT_GT(found.summary.peak_live, MiB(100));
  EXPECT_LT(found.summary.persistent_live, found.summary.peak_live);
}

class MetsTraceTest : public ::testing::TestWithParam<std::string> {};

// Four steps each. Inner loops may be taken for the step in the first two.
TEST_P(MetsTraceTest, StepIsFoundWhenItHasRepeatedTwice) {
  const Found found = FindStep(GetParam());
  ASSERT_FALSE(found.lengths.empty());
  const auto [length, ops] = *found.lengths.rbegin();
  EXPECT_NEAR(length, found.ops / 4.0, length / 16.0);
  EXPECT_GE(ops, found.ops / 2.0 - length / 16.0);
  EXPECT_EQ(found.program.ops.size(), length);
  EXPECT_GT(found.summary.peak_live, MiB(500));
}

std::vector<std::string> MetsTraces() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(METS_TRACES)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "mets-") && absl::EndsWith(name, ".csv.xz")) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MetsTraceTest);
INSTANTIATE_TEST_SUITE_P(Recorded, MetsTraceTest,
                         ::testing::ValuesIn(MetsTraces()));

}  // namespace
}  // namespace mets::steps
