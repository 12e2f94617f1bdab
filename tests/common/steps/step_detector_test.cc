#include "common/steps/step_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/steps/fake_training.h"

namespace mets::steps {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(StepDetectorTest, SimpleStepIsFoundWhenItHasRepeatedTwice) {
  Watcher watcher;
  const FakeOps step = MakeStep(1, 500);
  watcher.Feed(step);
  watcher.Feed(step);
  EXPECT_EQ(watcher.points.back().signature, 0);
  watcher.Feed(step[0]);
  EXPECT_NE(watcher.points.back().signature, 0);
  EXPECT_EQ(watcher.points.back().length, 500);
  EXPECT_TRUE(watcher.points.back().boundary);
  for (int i = 0; i < 20; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(20 * 500), ElementsAre(500));
}

TEST(StepDetectorTest, StepBeginsWhereTheLeastIsLive) {
  Watcher watcher;
  const FakeOps step = MakeStep(1, 300);
  // The sequence begins in the middle of a step.
  watcher.Feed(FakeOps(step.begin() + 100, step.end()));
  for (int i = 0; i < 20; ++i) watcher.Feed(step);
  std::vector<uint64_t> last(watcher.boundaries.end() - 10,
                             watcher.boundaries.end());
  for (uint64_t boundary : last) EXPECT_EQ((boundary - 200) % 300, 0);
  EXPECT_EQ(last.back() - last.front(), 9 * 300);
  EXPECT_EQ(watcher.points.back().position, 299);
}

TEST(StepDetectorTest, StepsAreCounted) {
  Watcher watcher;
  for (int i = 0; i < 50; ++i) watcher.Feed(MakeStep(1, 100));
  EXPECT_EQ(watcher.points.back().steps, 49);  // Completed ones.
}

TEST(StepDetectorTest, EqualStepsHaveEqualSignaturesInDifferentRuns) {
  Watcher a, b;
  const FakeOps step = MakeStep(1, 100);
  b.Feed(FakeOps(step.begin() + 37, step.end()));
  for (int i = 0; i < 5; ++i) a.Feed(step);
  for (int i = 0; i < 5; ++i) b.Feed(step);
  EXPECT_EQ(a.points.back().signature, b.points.back().signature);
}

// A step with two inner loops, of 50 repetitions each.
FakeOps StepWithLoops(bool grows) {
  FakeOps step = MakeStep(1, 40);
  FakeOps loops;
  for (int i = 0; i < 50; ++i) {
    for (uint64_t op = 1; op <= 12; ++op) {
      loops.push_back({5000 + op, MiB(120 + (grows ? 2 * i : 0) + op % 3)});
    }
  }
  for (int i = 50; i > 0; --i) {
    for (uint64_t op = 1; op <= 15; ++op) {
      loops.push_back({6000 + op, MiB(120 + (grows ? 2 * i : 0) + op % 3)});
    }
  }
  step.insert(step.begin() + 20, loops.begin(), loops.end());
  return step;
}

TEST(StepDetectorTest, InnerLoopThatBuildsUpMemoryIsNeverTheStep) {
  Watcher watcher;
  const FakeOps step = StepWithLoops(true);
  for (int i = 0; i < 2; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(2 * step.size()), ElementsAre(0));
  for (int i = 0; i < 20; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(19 * step.size()), ElementsAre(step.size()));
}

TEST(StepDetectorTest, InnerLoopIsNoLongerTheStepOnceTheStepHasRepeated) {
  Watcher watcher;
  const FakeOps step = StepWithLoops(false);
  for (int i = 0; i < 23; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(20 * step.size()), ElementsAre(step.size()));
  // Nor after an interruption.
  for (int i = 0; i < 300; ++i) {
    watcher.Feed(FakeOp{9000000u + i, MiB(110 + i % 90)});
  }
  const size_t begin = watcher.points.size();
  for (int i = 0; i < 5; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(watcher.points.size() - begin),
              Not(Contains(12)));
  EXPECT_THAT(watcher.Lengths(3 * step.size()), ElementsAre(step.size()));
}

TEST(StepDetectorTest, OpsMayChangePlaces) {
  std::mt19937 random(1);
  const FakeOps step = MakeStep(1, 800);
  Watcher watcher;
  for (int i = 0; i < 4; ++i) watcher.Feed(Permuted(step, 6, &random));
  EXPECT_EQ(watcher.points.back().length, 800);
  for (int i = 0; i < 200; ++i) watcher.Feed(Permuted(step, 6, &random));
  EXPECT_THAT(watcher.Lengths(200 * 800), ElementsAre(800));
  // One boundary a step, where it is due.
  const size_t count = watcher.boundaries.size();
  for (size_t i = count - 150; i < count; ++i) {
    EXPECT_NEAR(watcher.boundaries[i] - watcher.boundaries[i - 1], 800, 12);
  }
}

TEST(StepDetectorTest, OpsMayCrossTheBoundary) {
  std::mt19937 random(2);
  FakeOps sequence;
  for (int i = 0; i < 200; ++i) Append(&sequence, MakeStep(1, 800));
  Watcher watcher;
  watcher.Feed(Permuted(sequence, 6, &random));
  const std::set<uint32_t> lengths = watcher.Lengths(196 * 800);
  EXPECT_EQ(lengths.size(), 1);
  EXPECT_NEAR(*lengths.begin(), 800, 6);
  EXPECT_NEAR(watcher.boundaries.size(), 198, 2);
  EXPECT_NEAR(watcher.points.back().steps, 199, 2);
}

// A pipeline beside the step: an op once in a step, at any place.
TEST(StepDetectorTest, OpsOfAnotherThreadMayStandAnywhere) {
  std::mt19937 random(3);
  Watcher watcher;
  for (int i = 0; i < 200; ++i) {
    FakeOps step = MakeStep(1, 400);
    const size_t at = random() % step.size();
    step.insert(step.begin() + at, {77, step[at].live});
    watcher.Feed(step);
  }
  for (uint32_t length : watcher.Lengths(190 * 401)) {
    EXPECT_NEAR(length, 401, 2);
  }
}

TEST(StepDetectorTest, StepIsFoundAgainAtOnceAfterEvaluation) {
  Watcher watcher;
  const FakeOps train = MakeStep(1, 500);
  FakeOps evaluate = MakeStep(2, 120);
  for (int epoch = 0; epoch < 4; ++epoch) {
    const size_t begin = watcher.points.size();
    for (int i = 0; i < 40; ++i) watcher.Feed(train);
    const size_t found =
        std::find_if(watcher.points.begin() + begin, watcher.points.end(),
                     [](const StepPoint& p) { return p.length == 500; }) -
        watcher.points.begin() - begin;
    EXPECT_LE(found, epoch == 0 ? 1000 : 501) << epoch;
    EXPECT_THAT(watcher.Lengths(38 * 500), ElementsAre(500));
    for (int i = 0; i < 25; ++i) watcher.Feed(evaluate);
    // Also the evaluation's step is found, when training is surely over.
    EXPECT_THAT(watcher.Lengths(11 * 120), ElementsAre(120)) << epoch;
  }
}

// No op occurs once in such a period.
TEST(StepDetectorTest, StepIsFoundAgainThoughEvaluationComesEveryFiveSteps) {
  Watcher watcher;
  FakeOps period;
  for (int i = 0; i < 5; ++i) Append(&period, MakeStep(1, 300));
  for (int i = 0; i < 3; ++i) Append(&period, MakeStep(2, 100));
  for (int i = 0; i < 8; ++i) watcher.Feed(period);
  const size_t begin = watcher.points.size();
  for (int i = 0; i < 8; ++i) watcher.Feed(period);
  EXPECT_THAT(watcher.Lengths(8 * period.size()), ElementsAre(0, 300));
  size_t known = 0;
  for (size_t i = begin; i < watcher.points.size(); ++i) {
    known += watcher.points[i].length == 300;
  }
  EXPECT_GE(known, 8 * 4 * 300);  // Known from the second of the five on.
}

TEST(StepDetectorTest, NewBatchShapeIsNoticedAndFound) {
  Watcher watcher;
  for (int i = 0; i < 30; ++i) watcher.Feed(MakeStep(1, 400));
  const uint64_t before = watcher.points.back().signature;
  EXPECT_EQ(watcher.FeedUntilFound({MakeStep(2, 400)[0]}, 1), 1);
  for (int i = 0; i < 2; ++i) watcher.Feed(MakeStep(2, 400));
  EXPECT_EQ(watcher.points[watcher.points.size() - 300].signature, 0);
  watcher.Feed(MakeStep(2, 400));
  EXPECT_NE(watcher.points.back().signature, before);
  EXPECT_EQ(watcher.points.back().length, 400);
}

TEST(StepDetectorTest, TwoModelsStepByStepAreOneStep) {
  Watcher watcher;
  for (int i = 0; i < 20; ++i) {
    watcher.Feed(MakeStep(1, 300));
    watcher.Feed(MakeStep(2, 200));
  }
  EXPECT_THAT(watcher.Lengths(17 * 500), ElementsAre(500));
}

TEST(StepDetectorTest, TwoModelsInLongTurnsAreTwoSteps) {
  Watcher watcher;
  for (int turn = 0; turn < 6; ++turn) {
    for (int i = 0; i < 30; ++i) watcher.Feed(MakeStep(1, 300));
    EXPECT_THAT(watcher.Lengths(27 * 300), ElementsAre(300)) << turn;
    for (int i = 0; i < 30; ++i) watcher.Feed(MakeStep(2, 200));
    EXPECT_THAT(watcher.Lengths(25 * 200), ElementsAre(200)) << turn;
  }
}

TEST(StepDetectorTest, MicrobatchesBelongToTheirStep) {
  Watcher watcher;
  FakeOps step;
  for (int i = 0; i < 4; ++i) Append(&step, MakeStep(1, 200));
  Append(&step, MakeStep(2, 30));
  for (int i = 0; i < 15; ++i) watcher.Feed(step);
  EXPECT_THAT(watcher.Lengths(11 * step.size()), ElementsAre(step.size()));
}

TEST(StepDetectorTest, OnlyOddStepsAreInterruptedForAMoment) {
  Watcher watcher;
  for (int i = 0; i < 100; ++i) {
    watcher.Feed(MakeStep(1, 300));
    if (i % 30 == 29) watcher.Feed(MakeStep(3 + i, 50));  // A callback.
  }
  EXPECT_EQ(watcher.Lengths(97 * 300).count(300), 1);
  size_t known = 0;
  for (const StepPoint& point : watcher.points) known += point.length == 300;
  EXPECT_GE(known, 92 * 300);
}

TEST(StepDetectorTest, RandomSequenceHasNoStep) {
  std::mt19937 random(4);
  Watcher watcher;
  for (int i = 0; i < 200000; ++i) {
    watcher.Feed(FakeOp{1 + random() % 300, MiB(100 + random() % 50)});
  }
  EXPECT_THAT(watcher.Lengths(watcher.points.size()), ElementsAre(0));
}

TEST(StepDetectorTest, MillionsOfSignaturesAreForgotten) {
  Watcher watcher;
  size_t most = 0;
  for (uint64_t i = 1; i <= 1000000; ++i) {
    watcher.Feed(FakeOp{i, MiB(i % 100)});
    most = std::max(most, watcher.detector.signatures());
  }
  EXPECT_LE(most, 14336);
  EXPECT_THAT(watcher.Lengths(1000000), ElementsAre(0));
  EXPECT_LE(watcher.FeedUntilFound(MakeStep(5, 400), 4), 3);
}

}  // namespace
}  // namespace mets::steps
