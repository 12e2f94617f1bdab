// The C++ interface, against a real metsd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "mets/mets.hpp"
#include "tests/client/metsd_process.h"

namespace mets {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// A process has one session: all cases share it.
class MetsHppTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    metsd_ = new client::MetsdProcess("64MiB");
    OpenOptions options;
    options.run_dir = metsd_->run_dir();
    options.job = "cpp";
    session_ = new Client(Client::Open(options).value());
  }
  static void TearDownTestSuite() {
    delete session_;
    delete metsd_;
  }
  void TearDown() override {
    EXPECT_EQ(device_.Stats()->live_bytes, 0u);
    EXPECT_EQ(device_.Stats()->pinned_bytes, 0u);
  }

  static client::MetsdProcess* metsd_;
  static Client* session_;
  Device device_ = session_->OpenDevice().value();
};
client::MetsdProcess* MetsHppTest::metsd_ = nullptr;
Client* MetsHppTest::session_ = nullptr;

static_assert(!std::is_copy_constructible_v<Buffer> &&
              std::is_nothrow_move_constructible_v<Buffer>);
static_assert(!std::is_copy_constructible_v<Op> &&
              !std::is_copy_constructible_v<Section>);

TEST_F(MetsHppTest, BufferIsFreedWhenItsLastOwnerGoes) {
  Buffer a = device_.Allocate(4 * kMiB).value();
  EXPECT_EQ(a.bytes(), 4 * kMiB);
  Buffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): empty, as documented.
  EXPECT_TRUE(b);
  EXPECT_EQ(device_.Stats()->live_bytes, 4 * kMiB);
  b = device_.Allocate(8 * kMiB).value();
  EXPECT_EQ(device_.Stats()->live_bytes, 8 * kMiB);
  b.Free(nullptr);
  EXPECT_FALSE(b);
}

TEST_F(MetsHppTest, BuffersOfAnOpAreResidentUntilItEnds) {
  Buffer a = device_.Allocate(16 * kMiB).value();
  {
    const Op op = device_.Begin({Write(a)}).value();
    std::memset(a.data(), 7, a.bytes());
    EXPECT_EQ(device_.Stats()->pinned_bytes, 16 * kMiB);
  }
  EXPECT_EQ(device_.Stats()->pinned_bytes, 0u);
  Op op = device_.Begin({Read(a.as<char>() + 5), New(kMiB)}, nullptr, 0, "Sum")
              .value();
  EXPECT_EQ(a.as<char>()[5], 7);
  op.End(nullptr);
  EXPECT_EQ(device_.Stats()->pinned_bytes, 0u);
}

TEST_F(MetsHppTest, MoreThanTheDeviceHasIsWrittenAndReadBack) {
  std::vector<Buffer> buffers;
  for (char i = 0; i < 8; ++i) {
    const Op op = device_.Begin({New(16 * kMiB)}).value();
    buffers.push_back(device_.Allocate(16 * kMiB).value());
    std::memset(buffers.back().data(), i, buffers.back().bytes());
  }
  for (char i = 0; i < 8; ++i) {
    const Op op = device_.Begin({Read(buffers[i])}).value();
    EXPECT_EQ(buffers[i].as<char>()[16 * kMiB - 1], i);
  }
  EXPECT_GE(device_.Stats()->evicted_bytes_total, 64 * kMiB);
}

TEST_F(MetsHppTest, SectionIsLeftWhenItGoes) {
  {
    Expected<Section> outer = device_.Enter();
    ASSERT_TRUE(outer.ok());
    const Section inner = device_.Enter().value();
  }
  device_.StepBegins();  // No op may run then.
}

TEST_F(MetsHppTest, ErrorsCarryCodeAndText) {
  const Expected<Buffer> nothing = device_.Allocate(0);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.status().code(), METS_INVALID_ARGUMENT);
  EXPECT_THAT(nothing.status().message(), HasSubstr("0 bytes"));
  AllocateOptions at_once;
  at_once.deadline_ms = 0;
  const Expected<Buffer> large = device_.Allocate(65 * kMiB, at_once);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), METS_OUT_OF_MEMORY);
  const Expected<Device> unknown = session_->OpenDevice("host7");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), HasSubstr("host7"));
}

TEST_F(MetsHppTest, MobilityIsChanged) {
  Buffer a = device_.Allocate(4 * kMiB).value();
  EXPECT_TRUE(a.SetMobility(METS_HELD).ok());
  EXPECT_EQ(device_.Stats()->held_bytes, 4 * kMiB);
}

TEST_F(MetsHppTest, ShareIsDetachedWhenItsLastOwnerGoes) {
  Buffer buffer = device_.Allocate(4 * kMiB).value();
  {
    const Op op = device_.Begin({Write(buffer)}).value();
    std::memset(buffer.data(), 9, buffer.bytes());
  }
  ShareOptions options;
  options.name = "no such name";
  const Expected<Share> failed = device_.Publish(buffer, options);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), METS_INVALID_ARGUMENT);
  EXPECT_TRUE(buffer);
  options.name = "weights";
  EXPECT_EQ(device_.Attach(options).status().code(), METS_NOT_FOUND);
  Share share = device_.Publish(buffer, options).value();
  EXPECT_FALSE(buffer);
  EXPECT_EQ(share.bytes(), 4 * kMiB);
  EXPECT_EQ(share.as<char>()[0], 9);
  EXPECT_EQ(device_.Attach(options).status().code(), METS_ALREADY_EXISTS);
  share = Share();
  EXPECT_EQ(device_.Attach(options).status().code(), METS_NOT_FOUND);
}

TEST(ExpectedDeathTest, TakingAValueThatIsNotThereSaysWhy) {
  Expected<int> none = Status(METS_FAILED, "no such thing");
  EXPECT_DEATH(none.value(), "METS: no such thing");
}

}  // namespace
}  // namespace mets
