#include "daemon/sim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::sim {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

const SessionId kJob(1), kOther(2);

TEST(BusDirectionTest, CopiesRunOneAfterTheOther) {
  World world;
  Processor processor(&world);
  BusDirection bus(&world, 1e9, &processor);
  std::vector<double> ends;
  for (int i = 0; i < 2; ++i) {
    bus.Copy(kJob, Bytes(500'000'000), [&] { ends.push_back(world.now()); });
  }
  while (world.RunNext()) {
  }
  EXPECT_THAT(ends, ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(1, 1e-9)));
}

TEST(ProcessorTest, OpsAtTheSameTimeShareItEvenly) {
  World world;
  Processor processor(&world);
  std::vector<double> ends;
  const auto end = [&] { ends.push_back(world.now()); };
  processor.Run(kJob, 1, end);
  world.At(0.5, [&] { processor.Run(kOther, 1, end); });
  while (world.RunNext()) {
  }
  // Half a second alone, then a second at half speed.
  EXPECT_THAT(ends, ElementsAre(DoubleNear(1.5, 1e-9), DoubleNear(2, 1e-9)));
  EXPECT_NEAR(processor.shared(kJob), 0.5, 1e-9);
  EXPECT_NEAR(processor.shared(kOther), 0.5, 1e-9);
}

TEST(ProcessorTest, OthersCopiesSlowAnOpDownWhileTheyLast) {
  World world;
  Processor processor(&world);
  BusDirection bus(&world, 90e9, &processor);
  std::vector<double> ends;
  processor.Run(kJob, 1, [&] { ends.push_back(world.now()); });
  world.At(0.2, [&] { bus.Copy(kOther, Bytes(45'000'000'000), [] {}); });
  while (world.RunNext()) {
  }
  // Half a second at 94 % of its speed.
  EXPECT_THAT(ends, ElementsAre(DoubleNear(1.03, 1e-9)));
  EXPECT_NEAR(processor.slowed(kJob), 0.03, 1e-9);
  EXPECT_EQ(processor.slowed(kOther), 0);
}

TEST(ProcessorTest, CopiesBothWaysSlowOpsDownTwice) {
  World world;
  Processor processor(&world);
  BusDirection out(&world, 45e9, &processor), in(&world, 45e9, &processor);
  double end = 0;
  processor.Run(kJob, 1, [&] { end = world.now(); });
  out.Copy(kOther, Bytes(90'000'000'000), [] {});
  in.Copy(kOther, Bytes(90'000'000'000), [] {});
  while (world.RunNext()) {
  }
  EXPECT_NEAR(end, 1 / 0.94, 1e-9);
}

TEST(ProcessorTest, AJobsOwnCopiesDoNotSlowItDown) {
  World world;
  Processor processor(&world);
  BusDirection bus(&world, 90e9, &processor);
  double end = 0;
  processor.Run(kJob, 1, [&] { end = world.now(); });
  bus.Copy(kJob, Bytes(90'000'000'000), [] {});
  while (world.RunNext()) {
  }
  EXPECT_NEAR(end, 1, 1e-9);
}

TEST(WorldTest, EventsOfOneTimeRunInTheOrderInWhichTheyWereAdded) {
  World world;
  std::vector<int> order;
  world.At(2, [&] { order.push_back(3); });
  world.At(1, [&] { order.push_back(1); });
  world.At(1, [&] { order.push_back(2); });
  while (world.RunNext()) {
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace mets::sim
