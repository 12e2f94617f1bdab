#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/daemon/core/scheduling/fake_jobs.h"

namespace mets::core {
namespace {

TEST(TurnOrderTest, EqualWeightsGetEqualTimeWhateverTheirSteps) {
  FakeJobs jobs(SmallDevice());
  std::vector<FakeJobs::Job*> all;
  for (int i = 0; i < 5; ++i) {
    FakeJobSpec spec = Spec("job" + std::to_string(i), 900, 20);
    spec.compute = absl::Milliseconds(20 << i);
    all.push_back(&jobs.Add(spec));
  }
  jobs.Run(absl::Minutes(2));
  std::vector<double> times;
  for (const FakeJobs::Job* job : all) times.push_back(Seconds(*job));
  EXPECT_GE(Jain(times), 0.95);
}

// Progress ÷ weight, for weights 1, 2 and 4.
void ExpectWeightsHold(FakeJobs& jobs, int peak, int persistent) {
  std::vector<FakeJobs::Job*> all;
  for (int weight : {1, 2, 4}) {
    FakeJobSpec spec = Spec("w" + std::to_string(weight), peak, persistent);
    spec.weight = weight;
    all.push_back(&jobs.Add(spec));
  }
  jobs.Run(absl::Minutes(20));
  double sum = 0;
  for (const FakeJobs::Job* job : all) sum += Seconds(*job);
  for (const FakeJobs::Job* job : all) {
    const double due = sum * job->spec.weight / 7;
    EXPECT_NEAR(Seconds(*job) / due, 1, 0.1) << job->spec.name;
    EXPECT_LE(job->longest_wait, absl::Seconds(30));
  }
  EXPECT_GE(sum, 20 * 60 * 0.97);
}

TEST(TurnOrderTest, ProgressFollowsWeightsInTurns) {
  FakeJobs jobs(SmallDevice());
  ExpectWeightsHold(jobs, 900, 20);
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
}

TEST(TurnOrderTest, ProgressFollowsWeightsInQuanta) {
  FakeJobs jobs(SmallDevice());
  ExpectWeightsHold(jobs, 900, 600);
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kQuanta);
}

TEST(TurnOrderTest, HigherPriorityGoesFirstAndNobodyStarves) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  FakeJobs::Job& high = jobs.Add(spec);
  FakeJobs::Job& low = jobs.Add(Spec("low", 950, 30));
  FakeJobs::Job& lower = jobs.Add(Spec("lower", 950, 30));
  jobs.Run(absl::Minutes(5));
  EXPECT_LE(low.longest_wait, absl::Seconds(30));
  EXPECT_LE(lower.longest_wait, absl::Seconds(30));
  EXPECT_GT(low.steps, 5);
  EXPECT_GT(lower.steps, 5);
  EXPECT_GE(Seconds(high), 0.98 * 300);
}

TEST(TurnOrderTest, ALowerClassWithLongStepsHardlySlowsAHigherOne) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.compute = absl::Seconds(1);
  spec.priority = 1;
  FakeJobs::Job& high = jobs.Add(spec);
  spec.name = "low";
  spec.priority = 0;
  FakeJobs::Job& low = jobs.Add(spec);
  jobs.Run(absl::Minutes(10));
  EXPECT_EQ(jobs.turns().mode(0), SharingMode::kTurns);
  EXPECT_GE(Seconds(high), 0.98 * 600);
  EXPECT_LE(low.longest_wait, absl::Seconds(30));
  EXPECT_GT(Seconds(low), 3);
}

TEST(TurnOrderTest, ALowerClassComputesInTheGapsThatItFits) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  spec.input = absl::Milliseconds(400);
  FakeJobs::Job& high = jobs.Add(spec);
  FakeJobs::Job& low = jobs.Add(Spec("low", 950, 30));
  jobs.Run(absl::Minutes(5));
  EXPECT_GE(high.steps, 0.98 * 600);
  EXPECT_GE(low.steps, 600);
}

TEST(TurnOrderTest, AHigherClassGoesOnAfterItsFirstStep) {
  FakeJobs jobs(SmallDevice());
  FakeJobSpec spec = Spec("high", 950, 30);
  spec.priority = 1;
  FakeJobs::Job& high = jobs.Add(spec);
  FakeJobs::Job& low = jobs.Add(Spec("low", 950, 30));
  jobs.Run(absl::Seconds(5));
  EXPECT_GE(Seconds(high), 4.9);
  EXPECT_LE(Seconds(low), 0.02);  // The op that ran when they began.
}

TEST(TurnOrderTest, NewcomersDoNotCatchUp) {
  FakeJobs jobs(SmallDevice());
  FakeJobs::Job& a = jobs.Add(Spec("a", 950, 20));
  FakeJobs::Job& b = jobs.Add(Spec("b", 950, 20));
  jobs.Run(absl::Seconds(60));
  FakeJobs::Job& c = jobs.Add(Spec("c", 950, 20));
  const double a_before = Seconds(a);
  jobs.Run(absl::Seconds(30));
  EXPECT_GE(Jain({Seconds(a) - a_before, Seconds(c)}), 0.99);
  EXPECT_GT(Seconds(b), 30);
}

}  // namespace
}  // namespace mets::core
