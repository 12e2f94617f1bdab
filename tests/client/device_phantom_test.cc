// Phantom evictions: what no op has named cannot be touched, and who does is
// found out. The faults are real ones.
#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "client/src/fault_handler.h"
#include "client/src/log.h"
#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class DevicePhantomTest : public DeviceFixture {
 protected:
  DevicePhantomTest() : DeviceFixture(/*gated=*/false, /*phantom=*/KiB(4)) {
    METS_CHECK_OK(ServeFaultsOf(begin_, end_, device_.get()));
    SetLog(
        [](void* lines, int, const char* line) {
          static_cast<std::vector<std::string>*>(lines)->push_back(line);
        },
        &lines_);
  }
  ~DevicePhantomTest() override {
    SetLog(nullptr, nullptr);
    StopServingFaultsOf(device_.get());
  }

  Op* Begin(char* address, const char* name = nullptr) {
    const mets_access access = {address, 0, METS_WRITE};
    Op* op = nullptr;
    SetNextOpName(name);
    METS_CHECK_OK(device_->BeginOp(&access, address != nullptr,
                                   address == nullptr ? METS_UNKNOWN : 0, &op));
    return op;
  }
  // Allocated and filled by an op, as a framework does it.
  char* Make(Bytes bytes, char value) {
    Op* op = Begin(nullptr, "Fill");
    char* address = Alloc(bytes, value);
    device_->EndOp(op);
    return address;
  }
  uint64_t Missed() { return Stats().unobserved_accesses_total; }

  std::vector<std::string> lines_;
};

TEST_F(DevicePhantomTest, OpsFindTheirBuffersAsTheyWere) {
  char* a = Make(MiB(2), 5);
  char* small = Make(KiB(4), 6);
  for (int i = 0; i < 3; ++i) {
    Op* outer = Begin(a);
    Op* inner = Begin(small);
    EXPECT_TRUE(Holds(a, MiB(2), 5));
    EXPECT_TRUE(Holds(small, KiB(4), 6));
    device_->EndOp(inner);
    device_->EndOp(outer);
  }
  EXPECT_TRUE(Resident(a));
  EXPECT_EQ(Missed(), 0u);
  device_->SayMissedAccesses();
  device_->SayMissedAccesses();
  EXPECT_THAT(lines_, ElementsAre("phantom eviction: buffers were unreadable 8 "
                                  "times, and 0 accesses were missed"));
}

TEST_F(DevicePhantomTest, AMissedAccessIsServedCountedAndNamed) {
  char* a = Make(MiB(2), 5);
  char* b = Make(MiB(1), 6);
  EXPECT_EQ(*static_cast<volatile char*>(a), 5);
  EXPECT_EQ(*static_cast<volatile char*>(a + 1), 5);  // It is held now.
  Op* op = Begin(a, "MatMul");
  *static_cast<volatile char*>(b) = 7;
  device_->EndOp(op);
  EXPECT_EQ(Missed(), 2u);
  EXPECT_EQ(Info(a).mobility, METS_HELD);
  device_->SayMissedAccesses();
  EXPECT_THAT(
      lines_,
      ElementsAre(HasSubstr("and 2 accesses were missed"),
                  AllOf(HasSubstr("1 missed: read of a buffer of 2 MiB, in no "
                                  "op of thread '"),
                        HasSubstr("', last used by Fill")),
                  HasSubstr("1 missed: write to a buffer of 1 MiB, in the op "
                            "MatMul of thread '")));
}

TEST_F(DevicePhantomTest, WhatIsHeldIsLeftAlone) {
  char* a = Make(MiB(2), 5);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kHeld).ok());
  EXPECT_TRUE(Holds(a, MiB(2), 5));
  EXPECT_EQ(Missed(), 0u);
  ASSERT_TRUE(device_->SetMobility(a, Mobility::kMovable).ok());
  EXPECT_TRUE(Holds(a, MiB(2), 5));
  EXPECT_EQ(Missed(), 1u);
}

TEST_F(DevicePhantomTest, HiddenBuffersLeaveComeBackAndAreFreed) {
  char* a = Make(MiB(2), 5);
  char* b = Make(MiB(2), 6);
  EXPECT_EQ(Evict(a), v1::BUFFER_OUTCOME_DONE);
  EXPECT_FALSE(Resident(a));
  Op* op = Begin(a);
  EXPECT_TRUE(Holds(a, MiB(2), 5));
  device_->EndOp(op);
  EXPECT_EQ(Evict(b), v1::BUFFER_OUTCOME_DONE);
  device_->Free(a);
  device_->Free(b);
  EXPECT_EQ(Missed(), 0u);
  // The range is used again.
  char* c = Make(MiB(2), 7);
  EXPECT_EQ(c, a);
  device_->Free(c);
}

TEST_F(DevicePhantomTest, ThreadsThatShareBuffersMissNothing) {
  std::vector<char*> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(Make(KiB(64), 'a' + i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const int which = (i + t) % 4;
        Op* op = Begin(buffers[which]);
        ASSERT_TRUE(Holds(buffers[which], KiB(64), 'a' + which));
        device_->EndOp(op);
        char* own = Make(KiB(64), 'x');
        device_->Free(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Missed(), 0u);
}

}  // namespace
}  // namespace mets::client
