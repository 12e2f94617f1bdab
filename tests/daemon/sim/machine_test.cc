#include "daemon/sim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mets::sim {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(BusDirectionTest, CopiesRunOneAfterTheOther) {
  World world;
  BusDirection bus(&world, 1e9);
  std::vector<double> ends;
  for (int i = 0; i < 2; ++i) {
    bus.Copy(Bytes(500'000'000), [&] { ends.push_back(world.now()); });
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
  processor.Run(1, end);
  world.At(0.5, [&] { processor.Run(1, end); });
  while (world.RunNext()) {
  }
  // Half a second alone, then a second at half speed.
  EXPECT_THAT(ends, ElementsAre(DoubleNear(1.5, 1e-9), DoubleNear(2, 1e-9)));
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
