// libmets_torch.so once it has a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "tests/client/torch/mets_torch_library.h"

namespace mets {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void* const kStream = reinterpret_cast<void*>(0x70);
void* const kSideStream = reinterpret_cast<void*>(0x90);

class MetsTorchTest : public MetsTorchLibrary {
 protected:
  void SetUp() override {
    ASSERT_EQ(open_(0), METS_OK) << last_error_();
    Calls();
  }
};

TEST_F(MetsTorchTest, ASecondDeviceIsRefused) {
  EXPECT_EQ(open_(1), METS_INVALID_ARGUMENT);
  EXPECT_THAT(last_error_(), HasSubstr("cuda:0"));
  EXPECT_THAT(Thrown(100, 1), HasSubstr("cannot use cuda:1"));
}

TEST_F(MetsTorchTest, BuffersAreHeldAndStreamZeroIsTheLegacyStream) {
  void* a = alloc_(100, 0, nullptr);
  void* b = alloc_(200, 0, kStream);
  std::memset(a, 1, 100);
  free_(a, 100, 0, nullptr);
  free_(b, 200, 0, kStream);
  EXPECT_EQ(Calls(),
            "alloc 100 held 1\nalloc 200 held 112\nfree 1\nfree 112\n");
}

TEST_F(MetsTorchTest, NoBytesAreNoBuffer) {
  EXPECT_EQ(alloc_(0, 0, nullptr), nullptr);
  free_(nullptr, 0, 0, nullptr);
  EXPECT_EQ(Calls(), "");
}

TEST_F(MetsTorchTest, NoMemoryIsAnExceptionWithTheTextOfMets) {
  EXPECT_THAT(Thrown(65 * kMiB, 0),
              StartsWith("CUDA out of memory. METS: fake pool full"));
}

TEST_F(MetsTorchTest, ABufferOfSeveralStreamsIsFreedAfterAllOfThem) {
  constexpr size_t kOdd = 5 * 4096;  // No other test's, so that it comes back.
  void* a = alloc_(kOdd, 0, kStream);
  record_(a, kSideStream);
  record_(a, kSideStream);
  record_(a, nullptr);
  record_(a, kStream);
  Calls();
  free_(a, kOdd, 0, kStream);
  EXPECT_EQ(Calls(), "op 144\nop 1\nfree 112\n");
  // The next one at this address has no such past.
  void* b = alloc_(kOdd, 0, kStream);
  EXPECT_EQ(a, b);
  Calls();
  free_(b, kOdd, 0, kStream);
  EXPECT_EQ(Calls(), "free 112\n");
}

TEST_F(MetsTorchTest, AStreamIsKnownFromWhenItIsRecorded) {
  void* a = alloc_(100, 0, kStream);
  Calls();
  record_(a, kSideStream);
  EXPECT_EQ(Calls(), "op 144\n");
  int other = 0;
  record_(&other, kSideStream);
  EXPECT_EQ(Calls(), "");
  free_(a, 100, 0, kStream);
}

TEST_F(MetsTorchTest, ThreadsMayFreeWhatOthersAllocated) {
  void* a = alloc_(100, 0, kStream);
  record_(a, kSideStream);
  std::thread([&] { free_(a, 100, 0, kStream); }).join();
  mets_stats_t stats = Sized();
  EXPECT_EQ(stats_(&stats), METS_OK);
  EXPECT_EQ(stats.live_bytes, 0u);
}

TEST_F(MetsTorchTest, GateHintsAndStatsReachLibmets) {
  hint_();
  EXPECT_EQ(enter_(), METS_OK);
  void* a = alloc_(kMiB, 0, nullptr);
  mets_stats_t stats = Sized();
  EXPECT_EQ(stats_(&stats), METS_OK);
  EXPECT_EQ(stats.held_bytes, kMiB);
  free_(a, kMiB, 0, nullptr);
  leave_();
  EXPECT_EQ(Calls(), "hint\nenter\nalloc 1048576 held 1\nfree 1\nleave\n");
}

TEST_F(MetsTorchTest, GraphsAreRefused) {
  EXPECT_THROW(begin_pool_(), std::runtime_error);
}

}  // namespace
}  // namespace mets
