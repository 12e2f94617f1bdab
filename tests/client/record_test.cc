// Recordings of a live process: by itself, and by metsctl through a real metsd.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "client/include/mets/mets.h"
#include "common/trace/trace_reader.h"
#include "tests/client/metsd_process.h"

namespace mets::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::EventKind;

constexpr uint64_t kBytes = 4 << 20;

// A process has one session: the tests share one daemon and one job.
MetsdProcess& Metsd() {
  static MetsdProcess* metsd = new MetsdProcess("128MiB");
  return *metsd;
}

mets_device* OpenDevice(const std::string& run_dir, const char* job) {
  mets_open_options options = METS_OPEN_OPTIONS_INIT;
  options.run_dir = run_dir.c_str();
  options.job = job;
  mets_client* client = nullptr;
  METS_CHECK(mets_open(&options, &client) == METS_OK) << mets_last_error();
  mets_device* device = nullptr;
  METS_CHECK(mets_device_open(client, nullptr, METS_OPS_SEEN, &device) ==
             METS_OK)
      << mets_last_error();
  return device;
}

char* Alloc(mets_device* device, uint64_t bytes) {
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = bytes;
  void* address = nullptr;
  METS_CHECK(mets_alloc(device, &options, &address) == METS_OK);
  return static_cast<char*>(address);
}

// Two ops: "Make" allocates a buffer from `input`, "Use" reads it.
void Work(mets_device* device, char* input) {
  mets_access uses[] = {{input, 0, METS_READ}, {nullptr, kBytes, METS_NEW}};
  mets_op* op = nullptr;
  mets_op_name(device, "Make");
  METS_CHECK(mets_op_begin(device, nullptr, uses, 2, 0, &op) == METS_OK);
  char* made = Alloc(device, kBytes);
  std::memset(made, input[0], kBytes);
  mets_op_end(op, nullptr);
  uses[1] = {made, 0, METS_READ};
  uses[0] = {input, 0, METS_WRITE};
  mets_op_name(device, "Use");
  METS_CHECK(mets_op_begin(device, nullptr, uses, 2, 0, &op) == METS_OK);
  input[0] = made[1];
  mets_op_end(op, nullptr);
  mets_free(device, made, nullptr);
}

struct Counts {
  int ops = 0, mallocs = 0, frees = 0, reads = 0, writes = 0;
};

Counts CountsOf(const trace::Trace& trace) {
  Counts counts;
  for (const trace::Event& event : trace.events) {
    counts.ops += event.kind == EventKind::kBegin;
    counts.mallocs += event.kind == EventKind::kAlloc;
    counts.frees += event.kind == EventKind::kFree;
    counts.reads += event.kind == EventKind::kRead;
    counts.writes += event.kind == EventKind::kWrite;
  }
  return counts;
}

class RecordTest : public ::testing::Test {
 protected:
  RecordTest()
      : device_(OpenDevice(Metsd().run_dir(), "recorded")),
        input_(Alloc(device_, kBytes)),
        file_(absl::StrCat(Metsd().run_dir(), "/trace.csv.xz")),
        output_(absl::StrCat(Metsd().run_dir(), "/output")) {}
  ~RecordTest() override { mets_free(device_, input_, nullptr); }

  pid_t SpawnMetsctl(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {METS_TEST_METSCTL, "--run-dir", Metsd().run_dir(), "record"});
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int fd = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  // Exit status; -1 when it was killed.
  static int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Output() const {
    std::ifstream file(output_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void AwaitRecording(bool on) const {
    while ((mets_recording(device_) != 0) != on) std::this_thread::yield();
  }

  mets_device* const device_;
  char* const input_;
  const std::string file_;
  const std::string output_;
};

TEST_F(RecordTest, AProcessRecordsItself) {
  Work(device_, input_);
  EXPECT_EQ(mets_recording(device_), 0);
  ASSERT_EQ(mets_record_start(device_, file_.c_str()), METS_OK);
  EXPECT_EQ(mets_recording(device_), 1);
  EXPECT_EQ(mets_record_start(device_, file_.c_str()), METS_INVALID_ARGUMENT);
  Work(device_, input_);
  ASSERT_EQ(mets_record_stop(device_), METS_OK) << mets_last_error();
  EXPECT_EQ(mets_record_stop(device_), METS_INVALID_ARGUMENT);
  Work(device_, input_);

  const auto trace = trace::ReadTrace(file_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->job, "recorded");
  std::vector<EventKind> kinds;
  std::vector<std::string> names;
  for (const trace::Event& event : trace->events) {
    kinds.push_back(event.kind);
    if (event.name != 0) names.push_back(trace->names[event.name]);
  }
  EXPECT_THAT(
      kinds, ElementsAre(EventKind::kAlloc, EventKind::kBegin, EventKind::kRead,
                         EventKind::kAlloc, EventKind::kEnd, EventKind::kBegin,
                         EventKind::kWrite, EventKind::kRead, EventKind::kEnd,
                         EventKind::kFree));
  EXPECT_THAT(names, ElementsAre("Make", "Use"));
  EXPECT_EQ(trace->events[3].bytes, Bytes(kBytes));
}

TEST_F(RecordTest, AFileThatCannotBeCreatedLeavesNoRecording) {
  EXPECT_EQ(mets_record_start(device_, "/nowhere/a.csv"), METS_FAILED);
  EXPECT_THAT(mets_last_error(), HasSubstr("/nowhere/a.csv"));
  EXPECT_EQ(mets_recording(device_), 0);
  ASSERT_EQ(mets_record_start(device_, file_.c_str()), METS_OK);
  EXPECT_EQ(mets_record_stop(device_), METS_OK);
}

TEST_F(RecordTest, AFullDiskEndsTheRecordingAndIsSaid) {
  ASSERT_EQ(mets_record_start(device_, "/dev/full"), METS_OK);
  for (int i = 0; i < 2000 && mets_recording(device_) != 0; ++i) {
    Work(device_, input_);
  }
  EXPECT_EQ(mets_record_stop(device_), METS_FAILED);
  EXPECT_THAT(mets_last_error(), HasSubstr("No space left"));
}

TEST_F(RecordTest, SlabsAreBuffers) {
  ASSERT_EQ(mets_record_start(device_, file_.c_str()), METS_OK);
  mets_op* op = nullptr;
  METS_CHECK(mets_op_begin(device_, nullptr, nullptr, 0, METS_UNKNOWN, &op) ==
             METS_OK);
  char* first = Alloc(device_, 1000);
  char* second = Alloc(device_, 1000);
  mets_op_end(op, nullptr);
  mets_free(device_, first, nullptr);
  mets_free(device_, second, nullptr);
  ASSERT_EQ(mets_record_stop(device_), METS_OK);
  const auto trace = trace::ReadTrace(file_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Counts counts = CountsOf(*trace);
  EXPECT_EQ(counts.mallocs, 2);  // The fixture's, and the slab.
  EXPECT_EQ(counts.writes, 1);   // The second allocation in the slab.
}

TEST_F(RecordTest, MetsctlRecordsUntilItIsInterrupted) {
  const pid_t metsctl = SpawnMetsctl({"recorded", file_});
  AwaitRecording(true);
  for (int i = 0; i < 50; ++i) Work(device_, input_);
  kill(metsctl, SIGINT);
  ASSERT_EQ(Wait(metsctl), 0) << Output();
  AwaitRecording(false);
  const auto trace = trace::ReadTrace(file_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Counts counts = CountsOf(*trace);
  EXPECT_EQ(counts.ops, 100);
  EXPECT_GE(counts.mallocs, 51);  // A slab may be left from another test.
  EXPECT_EQ(counts.frees, 50);
  EXPECT_EQ(counts.reads, 100);
  EXPECT_EQ(counts.writes, 50);
  EXPECT_THAT(Output(), AllOf(HasSubstr(file_), HasSubstr("100 ops")));
}

TEST_F(RecordTest, MetsctlStopsInTime) {
  ASSERT_EQ(Wait(SpawnMetsctl({"recorded", file_, "--seconds", "0.05"})), 0)
      << Output();
  EXPECT_TRUE(trace::ReadTrace(file_).ok());
  AwaitRecording(false);
}

TEST_F(RecordTest, AKilledMetsctlEndsTheRecording) {
  const pid_t metsctl = SpawnMetsctl({"recorded", file_});
  AwaitRecording(true);
  kill(metsctl, SIGKILL);
  EXPECT_EQ(Wait(metsctl), -1);
  AwaitRecording(false);
}

TEST_F(RecordTest, OneRecordingAtATime) {
  // The one before ends when all its text is taken.
  while (mets_record_start(device_, file_.c_str()) == METS_INVALID_ARGUMENT) {
    std::this_thread::yield();
  }
  const std::string other = file_ + ".2";
  EXPECT_EQ(Wait(SpawnMetsctl({"recorded", other})), 1);
  EXPECT_THAT(Output(), HasSubstr("a recording of this device runs"));
  ASSERT_EQ(mets_record_stop(device_), METS_OK);
}

TEST_F(RecordTest, ErrorsNameTheJobsThereAre) {
  EXPECT_EQ(Wait(SpawnMetsctl({"nobody", file_})), 1);
  EXPECT_THAT(Output(), AllOf(HasSubstr("'nobody'"), HasSubstr("recorded")));
  EXPECT_EQ(Wait(SpawnMetsctl({"not a name", file_})), 2);
}

// This program again, as the job "short", which works once it is recorded:
// "ends" for a while, "runs" until it is killed. Returns when it has a device.
pid_t SpawnJob(const char* how) {
  int ends[2];
  METS_CHECK(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("RECORD_TEST_JOB", how, 1);
    setenv("RECORD_TEST_READY", absl::StrCat(ends[1]).c_str(), 1);
    setenv("METS_RUN_DIR", Metsd().run_dir().c_str(), 1);
    const char* argv[] = {"record_test", nullptr};
    execv("/proc/self/exe", const_cast<char**>(argv));
    _exit(127);
  }
  close(ends[1]);
  char ready;
  METS_CHECK(read(ends[0], &ready, 1) == 1);
  close(ends[0]);
  return pid;
}

int RunJob(const std::string& how) {
  mets_device* device = OpenDevice(getenv("METS_RUN_DIR"), "short");
  char* input = Alloc(device, kBytes);
  METS_CHECK(write(atoi(getenv("RECORD_TEST_READY")), "", 1) == 1);
  while (mets_recording(device) == 0) std::this_thread::yield();
  for (int i = 0; i < 20 || how == "runs"; ++i) Work(device, input);
  return 0;
}

TEST_F(RecordTest, AJobsEndCompletesItsTrace) {
  const pid_t job = SpawnJob("ends");
  ASSERT_EQ(Wait(SpawnMetsctl({"short", file_})), 0) << Output();
  EXPECT_EQ(Wait(job), 0);
  const auto trace = trace::ReadTrace(file_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(CountsOf(*trace).ops, 40);
  EXPECT_THAT(Output(), HasSubstr("40 ops; the job has ended"));
}

TEST_F(RecordTest, AKilledJobsTraceIsCompleteUpToSomeMoment) {
  const pid_t job = SpawnJob("runs");
  const std::string plain = Metsd().run_dir() + "/trace.csv";
  const pid_t metsctl = SpawnMetsctl({"short", plain});
  struct stat info = {};
  while (stat(plain.c_str(), &info) != 0 || info.st_size == 0) {
    ASSERT_EQ(waitpid(metsctl, nullptr, WNOHANG), 0) << Output();
    std::this_thread::yield();
  }
  kill(job, SIGKILL);
  EXPECT_EQ(Wait(job), -1);
  ASSERT_EQ(Wait(metsctl), 0) << Output();
  const auto trace = trace::ReadTrace(plain);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_GT(CountsOf(*trace).ops, 0);
  EXPECT_THAT(Output(), HasSubstr("the job's process has gone"));
}

}  // namespace
}  // namespace mets::client

int main(int argc, char** argv) {
  const char* how = getenv("RECORD_TEST_JOB");
  if (how != nullptr) return mets::client::RunJob(how);
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  mets::client::Metsd().Kill();
  return result;
}
