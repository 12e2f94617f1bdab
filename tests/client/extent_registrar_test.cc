#include "client/src/extent_registrar.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

constexpr Bytes kSize = MiB(2);

class ExtentRegistrarTest : public DeviceFixture {
 protected:
  ExtentRegistrarTest() : DeviceFixture(/*gated=*/false) {}

  void Deliver(uint64_t id) {
    ipc::Fds fds;
    fds.kind = ipc::FdKind::kExtent;
    fds.ids = {id};
    fds.sizes = {kSize};
    fds.fds.emplace_back(memfd_create("extent", MFD_CLOEXEC));
    METS_CHECK(ftruncate(fds.fds[0].get(), kSize.count()) == 0);
    inbox_.Put(std::move(fds));
  }
  bool Comes(uint64_t id) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (!device_->KnowsExtent(id) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return device_->KnowsExtent(id);
  }

  DescriptorInbox inbox_;
  ExtentRegistrar extents_{
      inbox_, [this] { return std::vector<Device*>{device_.get()}; }};
};

TEST_F(ExtentRegistrarTest, WhatIsAnnouncedIsRegisteredBeforeAnybodyAsks) {
  for (uint64_t id : {7001, 7002, 7003}) {
    Deliver(id);
    extents_.Announce(id);
  }
  for (uint64_t id : {7001, 7002, 7003}) EXPECT_TRUE(Comes(id));
}

TEST_F(ExtentRegistrarTest, WhoAsksGetsItAtOnce) {
  Deliver(7001);
  EXPECT_TRUE(extents_.Register(*device_, 7001).ok());
  EXPECT_TRUE(device_->KnowsExtent(7001));
  EXPECT_TRUE(absl::IsNotFound(extents_.Register(*device_, 7002)));
}

TEST_F(ExtentRegistrarTest, WhatIsForgottenStaysSo) {
  for (uint64_t id = 7001; id < 7100; ++id) {
    Deliver(id);
    extents_.Announce(id);
    extents_.Forget(id);
  }
  Deliver(7100);
  extents_.Announce(7100);
  ASSERT_TRUE(Comes(7100));  // Announced last.
  for (uint64_t id = 7001; id < 7100; ++id) {
    EXPECT_FALSE(device_->KnowsExtent(id));
  }
}

TEST_F(ExtentRegistrarTest, AnotherEpochBeginsWithoutTheOldOnes) {
  for (uint64_t id = 7001; id < 7100; ++id) {
    Deliver(id);
    extents_.Announce(id);
  }
  extents_.Reset();
  inbox_.Reset(/*new_epoch=*/true);
  device_->BeginEpoch(/*old_epoch=*/1);
  Deliver(7100);
  extents_.Announce(7100);
  ASSERT_TRUE(Comes(7100));
  for (uint64_t id = 7001; id < 7100; ++id) {
    EXPECT_FALSE(device_->KnowsExtent(id));
  }
}

}  // namespace
}  // namespace mets::client
