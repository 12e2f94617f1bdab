// Shared memory, of sessions with a real metsd. Several are open in this
// process, each as a process of its own would be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "client/src/session.h"
#include "tests/client/device_stats.h"
#include "tests/client/metsd_process.h"

namespace mets::client {
namespace {

using testing::HasSubstr;

class SharingJob {
 public:
  SharingJob(const MetsdProcess& metsd, const std::string& name,
             bool gated = false) {
    Settings settings;
    settings.run_dir = metsd.run_dir();
    settings.job = name;
    settings.wait = absl::Seconds(30);
    auto session = Session::Start(std::move(settings));
    METS_CHECK_OK(session);
    session_ = *std::move(session);
    auto device = session_->OpenDevice("", !gated);
    METS_CHECK_OK(device);
    device_ = *device;
  }

  Session& session() { return *session_; }
  Device& device() { return *device_; }

  // Fixed, so that it may be touched at any time.
  char* Make(Bytes bytes, char value) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    options.mobility = METS_FIXED;
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    std::memset(address, value, bytes.count());
    return static_cast<char*>(address);
  }
  absl::Status Publish(char* address, const std::string& name) {
    return device_->Publish(address, {name, "", 0});
  }
  const char* Attach(const std::string& name) {
    absl::StatusOr<void*> address = device_->AttachShare({name, "", 0});
    METS_CHECK_OK(address);
    return static_cast<const char*>(*address);
  }
  mets_stats_t Stats() { return StatsOf(*device_); }
  mets_buffer_info Info(const void* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    METS_CHECK_OK(device_->FindBuffer(address, &info));
    return info;
  }
  // The stream breaks, and is there again.
  void Break() {
    const uint64_t generation = session_->generation();
    session_->BreakForTest();
    while (session_->generation() < generation + 2) std::this_thread::yield();
  }

 private:
  std::unique_ptr<Session> session_;
  Device* device_ = nullptr;
};

TEST(ShareSessionTest, AShareIsABufferThatOpsMayName) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a"), b(metsd, "b");
  char* published = a.Make(MiB(8) - Bytes(5), 7);
  ASSERT_TRUE(a.Publish(published, "w").ok());
  const char* attached = b.Attach("w");
  EXPECT_EQ(b.Info(attached + 100).bytes, 8u * 1048576 - 5);
  EXPECT_EQ(b.Info(attached).mobility, METS_FIXED);
  const mets_access access = {attached + 9, 0, METS_READ};
  Op* op = nullptr;
  ASSERT_TRUE(b.device().BeginOp(&access, 1, 0, &op).ok());
  EXPECT_EQ(attached[9], 7);
  b.device().EndOp(op);
  EXPECT_EQ(b.Stats().live_bytes, 8u * 1048576 - 5);
  EXPECT_EQ(b.Stats().resident_bytes, 0u);  // metsd counts it for the other.
  EXPECT_EQ(b.Stats().cached_bytes, 0u);
  EXPECT_TRUE(absl::IsInvalidArgument(
      b.device().SetMobility(const_cast<char*>(attached), Mobility::kMovable)));
  EXPECT_TRUE(absl::IsInvalidArgument(a.Publish(published, "again")));
  ASSERT_TRUE(b.device().DetachShare(const_cast<char*>(attached)).ok());
  EXPECT_EQ(b.Stats().live_bytes, 0u);
  a.device().Free(published);
  EXPECT_EQ(a.Stats().live_bytes, 0u);
  EXPECT_EQ(a.Stats().resident_bytes, 0u);
}

TEST(ShareSessionTest, WhatCannotBePublishedStaysABuffer) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a"), b(metsd, "b");
  ASSERT_TRUE(a.Publish(a.Make(MiB(4), 1), "w").ok());
  char* other = b.Make(MiB(4), 2);
  EXPECT_TRUE(absl::IsAlreadyExists(b.Publish(other, "w")));
  other[0] = 3;  // It can be written...
  EXPECT_EQ(b.Info(other).mobility, METS_FIXED);
  ASSERT_TRUE(b.device().SetMobility(other, Mobility::kMovable).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(b.Publish(other, "bad name")));
  EXPECT_EQ(b.Info(other).mobility, METS_MOVABLE);  // ...and may leave.
  EXPECT_TRUE(absl::IsInvalidArgument(b.Publish(other + 4096, "x")));
  const absl::Status small = b.Publish(b.Make(KiB(4), 1), "small");
  EXPECT_TRUE(absl::IsInvalidArgument(small));
  EXPECT_THAT(small.message(), HasSubstr("1 MiB and more"));
  int local = 0;
  EXPECT_FALSE(b.Publish(reinterpret_cast<char*>(&local), "x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(b.device().DetachShare(other)));
}

TEST(ShareSessionTest, ABufferInSwapSpaceIsBroughtBackToBePublished) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a"), b(metsd, "b");
  char* buffer = a.Make(MiB(16), 5);
  ASSERT_TRUE(a.device().SetMobility(buffer, Mobility::kMovable).ok());
  char* rival = b.Make(MiB(56), 1);
  EXPECT_EQ(a.Info(buffer).resident, 0);
  b.device().Free(rival);
  ASSERT_TRUE(a.Publish(buffer, "w").ok());
  const char* attached = b.Attach("w");
  EXPECT_EQ(attached[0], 5);
  EXPECT_EQ(attached[MiB(16).count() - 1], 5);
}

TEST(ShareSessionTest, SurvivesBreaksOfTheStream) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a"), b(metsd, "b");
  ASSERT_TRUE(a.Publish(a.Make(MiB(8), 7), "w").ok());
  const char* attached = b.Attach("w");
  for (int i = 0; i < 5; ++i) {
    a.Break();
    b.Break();
    b.device().Free(b.Make(MiB(48), 1));
    EXPECT_EQ(attached[MiB(8).count() - 1], 7);
  }
  // It has no other share, and no chunk was lost.
  ASSERT_TRUE(b.device().DetachShare(const_cast<char*>(attached)).ok());
  EXPECT_EQ(b.Attach("w")[0], 7);
}

// Streams break at any moment of publishing and attaching; at the end, all
// memory is there.
TEST(ShareSessionTest, RequestsSurviveBreaksAtAnyMoment) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a"), b(metsd, "b");
  std::atomic<bool> done{false};
  std::thread breaker([&] {
    for (int i = 0; i < 12; ++i) {
      (i % 2 == 0 ? a : b).Break();
      absl::SleepFor(absl::Microseconds(i * 150));
    }
    done = true;
  });
  for (int i = 0; !done; ++i) {
    char* buffer = a.Make(MiB(4), static_cast<char>(i));
    const std::string name = absl::StrCat("w", i);
    METS_CHECK_OK(a.Publish(buffer, name));
    const char* attached = b.Attach(name);
    EXPECT_EQ(attached[MiB(4).count() - 1], static_cast<char>(i));
    a.device().Free(buffer);
    EXPECT_EQ(attached[0], static_cast<char>(i));
    METS_CHECK_OK(b.device().DetachShare(const_cast<char*>(attached)));
  }
  breaker.join();
  b.device().Free(b.Make(MiB(60), 1));
}

// Its free memory stays mapped while its turn has ended; a share may lie there
// by then.
TEST(ShareSessionTest, LentMemoryMayComeBackAsAShare) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a", /*gated=*/true), b(metsd, "b");
  a.device().Free(a.Make(MiB(32), 1));
  a.device().Lend();
  char* buffer = b.Make(MiB(48), 2);  // Of what was lent, among others.
  ASSERT_TRUE(b.Publish(buffer, "w").ok());
  const char* attached = a.Attach("w");
  EXPECT_EQ(attached[0], 2);
  EXPECT_EQ(attached[MiB(48).count() - 1], 2);
}

TEST(ShareSessionTest, MemoryFromBeforeARestartIsNotPublished) {
  MetsdProcess metsd("64MiB");
  SharingJob a(metsd, "a");
  char* buffer = a.Make(MiB(8), 7);
  const uint64_t generation = a.session().generation();
  metsd.Kill();
  metsd.Start();
  while (a.session().generation() < generation + 2) std::this_thread::yield();
  const absl::Status status = a.Publish(buffer, "w");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("copy it into a new buffer"));
  buffer[0] = 8;
}

}  // namespace
}  // namespace mets::client
