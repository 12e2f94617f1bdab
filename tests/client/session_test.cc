// libmets' session against a real metsd.
#include "client/src/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/time/clock.h"
#include "tests/client/device_stats.h"
#include "tests/client/metsd_process.h"

namespace mets::client {
namespace {

using testing::HasSubstr;

// A job of this process; several may be open at once.
class Job {
 public:
  Job(const MetsdProcess& metsd, const std::string& name,
      absl::Duration wait = absl::Seconds(30), Bytes limit = Bytes(),
      Bytes guarantee = Bytes()) {
    Settings settings;
    settings.run_dir = metsd.run_dir();
    settings.job = name;
    settings.wait = wait;
    settings.limit = limit;
    settings.guarantee = guarantee;
    auto session = Session::Start(std::move(settings));
    METS_CHECK_OK(session);
    session_ = *std::move(session);
    auto device = session_->OpenDevice("", true);
    METS_CHECK_OK(device);
    device_ = *device;
  }

  Session& session() { return *session_; }
  Device& device() { return *device_; }

  absl::StatusOr<char*> TryAlloc(Bytes bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    const absl::Status status = device_->Alloc(options, &address);
    if (!status.ok()) return status;
    return static_cast<char*>(address);
  }

  // Allocates in an op of known need, and fills.
  char* Make(Bytes bytes, char value) {
    Op* op = nullptr;
    const mets_access access = {nullptr, static_cast<uint64_t>(bytes.count()),
                                METS_NEW};
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    absl::StatusOr<char*> address = TryAlloc(bytes);
    METS_CHECK_OK(address);
    std::memset(*address, value, bytes.count());
    if (op != nullptr) device_->EndOp(op);
    return *address;
  }

  // The first and last byte, read in an op.
  bool Holds(char* address, Bytes bytes, char value) {
    const mets_access access = {address, 0, METS_READ};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    const bool right =
        address[0] == value && address[bytes.count() - 1] == value;
    device_->EndOp(op);
    return right;
  }

  mets_stats_t Stats() { return StatsOf(*device_); }

 private:
  std::unique_ptr<Session> session_;
  Device* device_ = nullptr;
};

absl::Status StartError(const std::string& run_dir, Settings settings = {}) {
  settings.run_dir = run_dir;
  if (settings.job.empty()) settings.job = "job";
  return Session::Start(std::move(settings)).status();
}

TEST(SessionTest, SaysThatNoDaemonIsThere) {
  const absl::Status status = StartError("/tmp/mets-there-is-none");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("/tmp/mets-there-is-none/fd.sock"));
  EXPECT_THAT(status.message(), HasSubstr("start metsd"));
}

TEST(SessionTest, RefusalsCarryTheDaemonsText) {
  MetsdProcess metsd("64MiB");
  Settings settings;
  settings.job = "not a name";
  const absl::Status status = StartError(metsd.run_dir(), settings);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("not a name"));

  Job first(metsd, "first", absl::Seconds(1), Bytes(), MiB(48));
  settings.job = "second";
  settings.run_dir = metsd.run_dir();
  settings.guarantee = MiB(32);
  auto second = Session::Start(settings);
  ASSERT_TRUE(second.ok());
  const absl::Status device = (*second)->OpenDevice("", true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(device));
  EXPECT_THAT(device.message(), HasSubstr("'first'"));
  EXPECT_THAT((*second)->OpenDevice("gpu7", true).status().message(),
              HasSubstr("host0"));
}

TEST(SessionTest, TwoJobsEvictEachOtherAndKeepTheirBytes) {
  MetsdProcess metsd("64MiB");
  Job a(metsd, "a");
  Job b(metsd, "b");
  std::vector<char*> of_a, of_b;
  for (int i = 0; i < 10; ++i) of_a.push_back(a.Make(MiB(4), 10 + i));
  for (int i = 0; i < 10; ++i) of_b.push_back(b.Make(MiB(4), 50 + i));
  const auto both = [&] {
    return a.Stats().evicted_bytes_total > 0 &&
           b.Stats().evicted_bytes_total > 0 &&
           a.Stats().restored_bytes_total > 0;
  };
  // metsd may hear of one's buffers only after the other has made its own.
  for (int round = 0; round < 20 && (round == 0 || !both()); ++round) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(a.Holds(of_a[i], MiB(4), 10 + i));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(b.Holds(of_b[i], MiB(4), 50 + i));
  }
  EXPECT_TRUE(both());
}

// metsd says so before the new process has mapped the device.
// Both have begun while there was room, and need more than is left.
TEST(SessionTest, OpsThatWaitForEachOthersBuffersEnd) {
  MetsdProcess metsd("64MiB");
  absl::Barrier* const meet = new absl::Barrier(2);
  const absl::Time begin = absl::Now();
  Job one(metsd, "one"), other(metsd, "other");
  const auto run = [&](Job& job, char value) {
    char* const input = job.Make(MiB(20), value);
    Op* op = nullptr;
    const mets_access access = {input, 0, METS_WRITE};
    METS_CHECK_OK(job.device().BeginOp(&access, 1, METS_UNKNOWN, &op));
    absl::StatusOr<char*> first = job.TryAlloc(MiB(12));
    METS_CHECK_OK(first);
    std::memset(*first, value + 1, MiB(12).count());
    input[0] = value + 2;
    if (meet->Block()) delete meet;
    const absl::StatusOr<char*> second = job.TryAlloc(MiB(16));
    METS_CHECK_OK(second);
    std::memset(*second, value + 3, MiB(16).count());
    EXPECT_EQ(input[0], value + 2);
    EXPECT_EQ(input[MiB(20).count() - 1], value);
    input[1] = value + 4;
    EXPECT_TRUE((*first)[0] == value + 1);
    job.device().Free(*first);
    job.device().EndOp(op);
    EXPECT_TRUE(job.Holds(*second, MiB(16), value + 3));
    char* const other = job.Make(MiB(60), value);
    EXPECT_TRUE(job.Holds(other, MiB(60), value));
    job.device().Free(other);
    const mets_access again = {input, 0, METS_READ};
    METS_CHECK_OK(job.device().BeginOp(&again, 1, 0, &op));
    EXPECT_EQ(input[0], value + 2);
    EXPECT_EQ(input[1], value + 4);
    job.device().EndOp(op);
    EXPECT_EQ(job.Stats().pinned_bytes, 0u);
  };
  std::thread thread(run, std::ref(other), 40);
  run(one, 60);
  thread.join();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST(SessionTest, AnOpThatGetsNoMoreHasWhatItHad) {
  MetsdProcess metsd("64MiB");
  Job job(metsd, "job", absl::Seconds(1));
  char* const input = job.Make(MiB(40), 7);
  Op* op = nullptr;
  const mets_access access = {input, 0, METS_WRITE};
  METS_CHECK_OK(job.device().BeginOp(&access, 1, METS_UNKNOWN, &op));
  const absl::Status more = job.TryAlloc(MiB(32)).status();
  EXPECT_TRUE(absl::IsOutOfRange(more)) << more;
  EXPECT_THAT(more.message(), HasSubstr("72 MiB"));
  EXPECT_EQ(job.Stats().pinned_bytes, uint64_t{40} << 20);
  EXPECT_EQ(input[0], 7);
  EXPECT_EQ(input[MiB(40).count() - 1], 7);
  METS_CHECK_OK(job.TryAlloc(MiB(20)));
  job.device().EndOp(op);
  EXPECT_EQ(job.Stats().pinned_bytes, 0u);
}

TEST(SessionTest, WhoComesToATightDeviceKnows) {
  MetsdProcess metsd("64MiB");
  Job a(metsd, "a");
  std::vector<char*> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(a.Make(MiB(4), i));
  const auto shortage = [&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(a.Holds(buffers[i], MiB(4), i));
  };
  for (int i = 0; i < 5; ++i) {
    shortage();
    ASSERT_TRUE(a.device().tight());
    Job b(metsd, "b");
    for (int round = 0; round < 100 && !b.device().tight(); ++round) shortage();
    EXPECT_TRUE(b.device().tight());
  }
}

TEST(SessionTest, OutOfMemorySaysWhoHoldsWhat) {
  MetsdProcess metsd("64MiB");
  Job a(metsd, "holder");
  Job b(metsd, "asker", absl::Milliseconds(200), MiB(32));
  char* held = a.Make(MiB(48), 1);
  ASSERT_TRUE(a.device().SetMobility(held, Mobility::kHeld).ok());
  EXPECT_THAT(b.TryAlloc(MiB(24)).status().message(), HasSubstr("'holder'"));
  EXPECT_TRUE(absl::IsOutOfRange(b.TryAlloc(MiB(40)).status()));
  EXPECT_TRUE(absl::IsOutOfRange(b.TryAlloc(GiB(1)).status()));
  EXPECT_TRUE(b.TryAlloc(MiB(8)).ok());
}

TEST(SessionTest, AnAccessThatNobodyAnnouncedIsServed) {
  MetsdProcess metsd("32MiB");
  Job a(metsd, "a");
  char* buffer = a.Make(MiB(20), 3);
  Job b(metsd, "b");
  char* other = b.Make(MiB(20), 4);
  EXPECT_EQ(a.Stats().swapped_bytes, static_cast<uint64_t>(MiB(20).count()));
  EXPECT_EQ(*static_cast<volatile char*>(buffer + 4567), 3);
  EXPECT_EQ(a.Stats().unobserved_accesses_total, 1u);
  EXPECT_EQ(a.Stats().held_bytes, static_cast<uint64_t>(MiB(20).count()));
  a.device().Free(buffer);
  EXPECT_TRUE(b.Holds(other, MiB(20), 4));
}

TEST(SessionTest, ABrokenStreamComesBackWithEverything) {
  MetsdProcess metsd("48MiB");
  Job a(metsd, "a");
  Job b(metsd, "b");
  char* first = a.Make(MiB(24), 1);
  char* second = b.Make(MiB(32), 2);
  for (int i = 0; i < 5; ++i) {
    const uint64_t generation = a.session().generation();
    a.session().BreakForTest();
    EXPECT_TRUE(a.Holds(first, MiB(24), 1));
    EXPECT_TRUE(b.Holds(second, MiB(32), 2));
    while (a.session().generation() < generation + 2) std::this_thread::yield();
    char* temporary = a.Make(MiB(8), 5);
    EXPECT_TRUE(a.Holds(temporary, MiB(8), 5));
    a.device().Free(temporary);
  }
}

TEST(SessionTest, AKilledDaemonComesBackAndNothingIsLost) {
  MetsdProcess metsd("48MiB");
  Job a(metsd, "a");
  char* first = a.Make(MiB(24), 1);
  char* second = a.Make(MiB(16), 2);
  char* third = a.Make(MiB(24), 3);
  EXPECT_GT(a.Stats().swapped_bytes, 0u);
  const uint64_t epoch = a.session().epoch();
  metsd.Kill();
  EXPECT_TRUE(a.Holds(third, MiB(24), 3));
  std::thread restart([&] { metsd.Start(); });
  EXPECT_TRUE(a.Holds(first, MiB(24), 1));
  restart.join();
  EXPECT_NE(a.session().epoch(), epoch);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(a.Holds(first, MiB(24), 1));
    EXPECT_TRUE(a.Holds(second, MiB(16), 2));
    EXPECT_TRUE(a.Holds(third, MiB(24), 3));
  }
}

TEST(SessionTest, AForkedChildEndsWhenItTouchesABuffer) {
  MetsdProcess metsd("32MiB");
  Job a(metsd, "a");
  char* buffer = a.Make(MiB(4), 1);
  EXPECT_EXIT(*static_cast<volatile char*>(buffer) = 2,
              testing::KilledBySignal(SIGSEGV), "forked child of");
  EXPECT_TRUE(a.Holds(buffer, MiB(4), 1));
}

// Jobs whose ops each need nearly the whole pool take turns. (The same with
// processes: tests/e2e/stress_test.py.)
TEST(SessionTest, OpsOfManyThreadsOnASmallPoolEnd) {
  MetsdProcess metsd("26MiB");
  constexpr int kJobs = 4;
  std::vector<std::unique_ptr<Job>> jobs;
  for (int j = 0; j < kJobs; ++j) {
    jobs.push_back(std::make_unique<Job>(metsd, "job" + std::to_string(j),
                                         absl::Seconds(120)));
  }
  std::vector<std::thread> threads;
  for (int j = 0; j < kJobs; ++j) {
    threads.emplace_back([&job = *jobs[j], j] {
      char* inputs[] = {job.Make(MiB(8), j), job.Make(MiB(8), j + 10)};
      for (int round = 0; round < 20; ++round) {
        const mets_access accesses[] = {
            {inputs[0], 0, METS_READ},
            {inputs[1], 0, METS_WRITE},
            {nullptr, static_cast<uint64_t>(MiB(8).count()), METS_NEW}};
        Op* op = nullptr;
        METS_CHECK_OK(job.device().BeginOp(accesses, 3, 0, &op));
        absl::StatusOr<char*> output = job.TryAlloc(MiB(8));
        METS_CHECK_OK(output);
        ASSERT_EQ(inputs[0][round * 4096], j);
        ASSERT_EQ(inputs[1][round * 4096], j + 10);
        std::memset(*output, round, 4096);
        job.device().EndOp(op);
        job.device().Free(*output);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mets::client
