// metsd and metsctl as programs: what people see.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/ipc/socket_file.h"
#include "tests/daemon/app/test_client.h"

namespace mets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMetsd[] = METS_BIN_DIR "/metsd";
constexpr char kMetsctl[] = METS_BIN_DIR "/metsctl";

struct Result {
  int exit_status = -1;
  std::string out;
  std::string err;
};

class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    run_dir_ = dir_ + "/run";
  }
  ~ProgramsTest() override {
    if (metsd_ > 0) Signal(SIGKILL);
    std::filesystem::remove_all(dir_);
  }

  // Starts a program; stdout and stderr go to files.
  pid_t Spawn(std::vector<std::string> words, const std::string& output) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open((output + ".out").c_str(), flags, 0600), 1);
    dup2(open((output + ".err").c_str(), flags, 0600), 2);
    setenv("METS_RUN_DIR", run_dir_.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }

  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  Result Run(std::vector<std::string> words) {
    const std::string output = dir_ + "/run_output";
    const pid_t pid = Spawn(std::move(words), output);
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            ReadAll(output + ".out"), ReadAll(output + ".err")};
  }

  void StartMetsd() {
    std::filesystem::remove(dir_ + "/metsd.err");  // Of an earlier one.
    metsd_ = Spawn({kMetsd, "--run-dir", run_dir_, "--device", "host:16MiB",
                    "--swap-space", "32MiB"},
                   dir_ + "/metsd");
    for (int i = 0; i < 2000; ++i) {
      if (Log().find("ready: ") != std::string::npos) return;
      usleep(5000);
    }
    FAIL() << Log();
  }
  std::string Log() const { return ReadAll(dir_ + "/metsd.err"); }

  int Signal(int number) {
    kill(metsd_, number);
    int status = 0;
    waitpid(metsd_, &status, 0);
    metsd_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string dir_;
  std::string run_dir_;
  pid_t metsd_ = -1;
};

TEST_F(ProgramsTest, DaemonSaysReadyWithItsSocketsAndStopsCleanly) {
  StartMetsd();
  EXPECT_THAT(Log(), AllOf(HasSubstr(run_dir_ + "/fd.sock"),
                           HasSubstr(run_dir_ + "/session.sock"),
                           HasSubstr(run_dir_ + "/admin.sock")));
  EXPECT_EQ(Signal(SIGTERM), 0);
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

TEST_F(ProgramsTest, SystemdIsToldWhenItIsReadyAndWhenItStops) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = dir_ + "/notify";
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                 sizeof(address)),
            0);
  const timeval timeout = {20, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  // The next message that is not about the descriptor store.
  const auto receive = [&socket] {
    for (;;) {
      char text[256];
      const ssize_t size = recv(socket.get(), text, sizeof(text), 0);
      const std::string message(text, size > 0 ? size : 0);
      if (message.find("FDSTORE") == std::string::npos) return message;
    }
  };
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  StartMetsd();
  unsetenv("NOTIFY_SOCKET");
  EXPECT_THAT(receive(), HasSubstr("READY=1"));
  EXPECT_EQ(Signal(SIGTERM), 0);
  EXPECT_THAT(receive(), HasSubstr("STOPPING=1"));
}

TEST_F(ProgramsTest, SecondDaemonFailsWithOneLine) {
  StartMetsd();
  const Result second = Run({kMetsd, "--run-dir", run_dir_, "--device",
                             "host:16MiB", "--swap-space", "0"});
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.err, AllOf(StartsWith("metsd: "), HasSubstr("in use")));
  EXPECT_EQ(Signal(SIGINT), 0);
}

TEST_F(ProgramsTest, BadConfigurationIsExitStatus2) {
  std::ofstream(dir_ + "/metsd.toml") << "speed = \"fast\"\n";
  const Result result = Run({kMetsd, "--config", dir_ + "/metsd.toml"});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("metsd.toml:1"), HasSubstr("speed")));
  const Result folder = Run({kMetsd, "--check-config", "--config", dir_});
  EXPECT_EQ(folder.exit_status, 2);
  EXPECT_THAT(folder.err, HasSubstr("Is a directory"));
}

TEST_F(ProgramsTest, StatusShowsDevicesAndJobs) {
  StartMetsd();
  TestClient client(run_dir_);
  client.Join("bert");
  ASSERT_TRUE(client.Acquire(1, 4 << 20).has_granted());
  const Result status = Run({kMetsctl, "status", "--json"});
  ASSERT_EQ(status.exit_status, 0) << status.err;
  const auto json = nlohmann::json::parse(status.out);
  EXPECT_EQ(json.at("devices").at(0).at("pool_bytes"), 16 << 20);
  EXPECT_EQ(json.at("devices").at(0).at("free_bytes"), 12 << 20);
  EXPECT_EQ(json.at("jobs").at(0).at("name"), "bert");
  EXPECT_EQ(json.at("jobs").at(0).at("resident_bytes"), 4 << 20);
  EXPECT_THAT(Run({kMetsctl, "devices"}).out, HasSubstr("host0"));
  EXPECT_THAT(Run({kMetsctl, "--run-dir", run_dir_, "jobs"}).out,
              HasSubstr("bert"));
}

TEST_F(ProgramsTest, LimitHoldsFromThenOn) {
  StartMetsd();
  TestClient client(run_dir_);
  client.Join("bert");
  const Result limit = Run({kMetsctl, "limit", "bert", "2MiB"});
  EXPECT_EQ(limit.exit_status, 0) << limit.err;
  const v1::DaemonMessage denied = client.Acquire(1, 4 << 20);
  ASSERT_TRUE(denied.has_denied());
  EXPECT_THAT(denied.denied().reason(),
              AllOf(HasSubstr("limit"), HasSubstr("2 MiB")));
  const Result jobs = Run({kMetsctl, "jobs", "--json"});
  EXPECT_EQ(nlohmann::json::parse(jobs.out).at("jobs").at(0).at("limit_bytes"),
            2 << 20);
}

// As in a tenant's container.
TEST_F(ProgramsTest, ADirectoryForJobsAloneIsSaidToBeOne) {
  std::filesystem::create_directory(run_dir_);
  UniqueFd jobs(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = *ipc::SocketAddress(run_dir_ + "/fd.sock");
  ASSERT_EQ(bind(jobs.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  ASSERT_EQ(listen(jobs.get(), 4), 0);
  const Result status = Run({kMetsctl, "status"});
  EXPECT_EQ(status.exit_status, 1);
  EXPECT_THAT(status.err, HasSubstr("has sockets for jobs, and no admin.sock"));
}

TEST_F(ProgramsTest, ErrorsOfMetsctlAreOneLine) {
  const Result down = Run({kMetsctl, "status"});
  EXPECT_EQ(down.exit_status, 1);
  EXPECT_THAT(down.err,
              AllOf(StartsWith("metsctl: metsd is not running in " + run_dir_),
                    HasSubstr("start it with")));
  StartMetsd();
  const Result unknown = Run({kMetsctl, "limit", "nobody", "1MiB"});
  EXPECT_EQ(unknown.exit_status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no job 'nobody'"));
  for (const char* too_small : {"0", "10"}) {
    const Result small = Run({kMetsctl, "limit", "bert", too_small});
    EXPECT_EQ(small.exit_status, 2) << too_small;
    EXPECT_THAT(small.err, HasSubstr("at least 1 MiB is needed"));
  }
  const Result size = Run({kMetsctl, "limit", "bert", "huge"});
  EXPECT_EQ(size.exit_status, 2);
  EXPECT_THAT(size.err, HasSubstr("huge"));
}

TEST_F(ProgramsTest, WhatIsTypedWrongIsNamedWithTheWayToHelp) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "a command is needed (metsctl --help"},
      {{"frobnicate"}, "there is no command 'frobnicate'"},
      {{"status", "--jsn"}, "--jsn (metsctl status --help"},
      {{"record", "bert", "file", "--seconds", "-3"},
       "'-3' is not possible; a number of seconds is needed"},
      {{"run", "--priority", "99999", "--", "true"},
       "--priority: 99999 is not between -1000 and 1000"}};
  for (const auto& [words, said] : cases) {
    std::vector<std::string> command = {kMetsctl};
    command.insert(command.end(), words.begin(), words.end());
    const Result result = Run(command);
    EXPECT_EQ(result.exit_status, 2) << said;
    EXPECT_THAT(result.err, AllOf(StartsWith("metsctl: "), HasSubstr(said)));
  }
  EXPECT_EQ(Run({kMetsctl, "run", "--help"}).exit_status, 0);
  EXPECT_THAT(Run({kMetsctl, "--help"}).out, HasSubstr("exit status"));
}

TEST_F(ProgramsTest, OutputThatCannotBeWrittenIsAFailure) {
  StartMetsd();
  for (const std::string what : {"status", "--help", "--version"}) {
    const Result full =
        Run({"/bin/sh", "-c", "exec \"$0\" " + what + " >/dev/full", kMetsctl});
    EXPECT_EQ(full.exit_status, 1) << what;
    EXPECT_THAT(full.err, HasSubstr("No space left on device")) << what;
  }
  for (const std::string what :
       {"--help", "--check-config --device host:16MiB"}) {
    const Result full =
        Run({"/bin/sh", "-c", "exec \"$0\" " + what + " >/dev/full", kMetsd});
    EXPECT_EQ(full.exit_status, 1) << what;
    EXPECT_THAT(full.err, HasSubstr("No space left on device")) << what;
  }
}

TEST_F(ProgramsTest, AReportThatCannotBeWrittenSaysWhy) {
  const Result report = Run({kMetsctl, "report", "--out", dir_ + "/no/x.gz"});
  EXPECT_EQ(report.exit_status, 1);
  EXPECT_THAT(report.err, AllOf(HasSubstr("tar"), HasSubstr(dir_ + "/no/x.gz"),
                                HasSubstr("No such file or directory")));
}

TEST_F(ProgramsTest, RunSetsTheJobsEnvironment) {
  StartMetsd();
  const Result run =
      Run({kMetsctl, "run", "--job", "bert", "--limit", "8MiB", "--", "/bin/sh",
           "-c", "echo $METS_RUN_DIR $METS_JOB $METS_LIMIT; exit 7"});
  EXPECT_EQ(run.exit_status, 7);
  EXPECT_EQ(run.out, run_dir_ + " bert 8MiB\n");
  const Result missing = Run({kMetsctl, "run", "--", "/no/such/program"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/program"));
}

TEST_F(ProgramsTest, RestartAfterAKillKnowsWhatJobsHold) {
  StartMetsd();
  TestClient client(run_dir_);
  client.Join("bert");
  const v1::DaemonMessage granted = client.Acquire(1, 4 << 20);
  ASSERT_TRUE(granted.has_granted());
  const uint64_t epoch = client.epoch();
  const auto recorded = [this] {
    return ReadAll(run_dir_ + "/state.json").find("4194304") !=
           std::string::npos;
  };
  for (int i = 0; i < 2000 && !recorded(); ++i) usleep(5000);
  ASSERT_TRUE(recorded());
  Signal(SIGKILL);
  StartMetsd();
  EXPECT_THAT(Log(), HasSubstr("expecting job 'bert'"));
  ASSERT_TRUE(client.ConnectDescriptors().ok());
  EXPECT_EQ(client.epoch(), epoch + 1);
  client.OpenStream();
  v1::ClientMessage hello = client.Hello("bert");
  hello.mutable_hello()->set_reconnect(true);
  ASSERT_TRUE(client.Send(hello));
  ASSERT_TRUE(client.ReadUntil(v1::DaemonMessage::kWelcome).has_welcome());
  v1::ClientMessage attach;
  attach.mutable_attach_device()->set_device("host0");
  ASSERT_TRUE(client.Send(attach));
  v1::ClientMessage message;
  message.mutable_snapshot()->set_device("host0");
  message.mutable_snapshot()->set_orphan_bytes(4 << 20);
  message.mutable_snapshot()->set_last(true);
  ASSERT_TRUE(client.Send(message));
  EXPECT_TRUE(client.Acquire(2, 12 << 20, 5000).has_granted());
  EXPECT_TRUE(client.Acquire(3, 1 << 20, 0).has_denied());
}

TEST_F(ProgramsTest, BenchMeasuresTheDeviceAndLeavesItAsItWas) {
  StartMetsd();
  const Result result = Run({kMetsctl, "bench", "--json", "--move", "3MiB"});
  ASSERT_EQ(result.exit_status, 0) << result.err;
  const auto report = nlohmann::json::parse(result.out);
  EXPECT_EQ(report["device"], "host0");
  EXPECT_EQ(report["kind"], "host");
  for (const char* figure :
       {"raw_out_gbps", "raw_in_gbps", "raw_both_gbps", "fresh_ms",
        "alloc_cached_us", "alloc_native_us", "hand_over_gbps",
        "hand_over_ratio", "hand_over_in_gbps", "hand_over_out_gbps"}) {
    EXPECT_GT(report["figures"][figure], 0) << figure;
  }
  const auto status =
      nlohmann::json::parse(Run({kMetsctl, "status", "--json"}).out);
  EXPECT_EQ(status["devices"][0]["free_bytes"],
            status["devices"][0]["pool_bytes"]);
  // What the hand-overs moved, by each of the two.
  const int64_t moved = 4 * MiB(3).count();
  for (const auto& job : status["jobs"]) {
    EXPECT_GE(job["evicted_bytes_total"], moved) << job["name"];
    EXPECT_GE(job["restored_bytes_total"], moved) << job["name"];
  }
}

TEST_F(ProgramsTest, BenchRefusesToMoveTooLittleAndTooMuch) {
  StartMetsd();
  for (const char* move : {"1MiB", "1GiB"}) {
    const Result result = Run({kMetsctl, "bench", "--move", move});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_THAT(result.err, HasSubstr("at least 2 MiB and at most 12.8 MiB"));
  }
}

}  // namespace
}  // namespace mets
