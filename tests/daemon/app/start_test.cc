// What can go wrong at the start, and what is left at the end.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "daemon/app/recovery/state_file.h"
#include "tests/daemon/app/daemon_fixture.h"
#include "tests/daemon/app/http_get.h"
#include "tests/daemon/app/test_client.h"

namespace mets {
namespace {

using ::testing::HasSubstr;

class StartTest : public DaemonFixture {
 protected:
  std::string ErrorOf(app::Config config) {
    const absl::Status status = TryStart(std::move(config));
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }
};

TEST_F(StartTest, SocketsAreThereAndGoAgain) {
  Start();
  for (const char* name : {"fd.sock", "session.sock", "admin.sock"}) {
    struct stat info;
    ASSERT_EQ(stat((run_dir_ + "/" + name).c_str(), &info), 0) << name;
    EXPECT_TRUE(S_ISSOCK(info.st_mode));
    EXPECT_EQ(info.st_mode & 0007, 0u) << name;
  }
  daemon_->Stop();
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

TEST_F(StartTest, SecondDaemonInTheSameDirectoryIsRefused) {
  Start();
  const auto second = app::Daemon::Start(SmallConfig(), log_);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(run_dir_ + "/session.sock is in use"));
  TestClient client(run_dir_);  // The first one goes on.
  client.Join("a");
}

TEST_F(StartTest, OccupiedDescriptorSocketIsNamed) {
  std::filesystem::create_directory(run_dir_);
  auto other = ipc::DescriptorListener::Listen(run_dir_ + "/fd.sock", 0600);
  ASSERT_TRUE(other.ok());
  std::ofstream(run_dir_ + "/state.json") << "theirs";
  EXPECT_THAT(ErrorOf(SmallConfig()), HasSubstr("/fd.sock is in use"));
  std::string state;
  std::ifstream(run_dir_ + "/state.json") >> state;
  EXPECT_EQ(state, "theirs");
}

TEST_F(StartTest, StaleSocketsAreReplaced) {
  Start();
  const std::string copy = dir_ + "/copy";
  std::filesystem::create_directory(copy);
  // Hard links outlive the daemon, as sockets of a killed one would.
  for (const char* name : {"fd.sock", "session.sock", "admin.sock"}) {
    std::filesystem::create_hard_link(run_dir_ + "/" + name, copy + "/" + name);
  }
  daemon_ = nullptr;
  run_dir_ = copy;
  Start();
  TestClient client(run_dir_);
  client.Join("a");
}

TEST_F(StartTest, MissingDirectoryIsNamed) {
  app::Config config = SmallConfig();
  config.run_dir = dir_ + "/no/run";
  EXPECT_THAT(ErrorOf(config), HasSubstr(dir_ + "/no does not exist"));
}

TEST_F(StartTest, TooLittleMemoryIsRefusedWithTheNumbers) {
  app::Config config = SmallConfig();
  config.devices = {{"host", GiB(1 << 20)}};
  const std::string error = ErrorOf(config);
  EXPECT_THAT(error, HasSubstr("too little memory"));
  EXPECT_THAT(error, HasSubstr("1024 TiB"));
}

TEST_F(StartTest, UnknownPolicyIsRefusedWithTheKnownOnes) {
  app::Config config = SmallConfig();
  config.policy = "best";
  const std::string error = ErrorOf(config);
  EXPECT_THAT(error, HasSubstr("best"));
  EXPECT_THAT(error, HasSubstr("lru"));
}

TEST_F(StartTest, UnknownGroupIsRefused) {
  app::Config config = SmallConfig();
  config.socket_group = "no-such-group";
  EXPECT_THAT(ErrorOf(config), HasSubstr("no-such-group"));
}

TEST_F(StartTest, GroupMayUseTheJobsSocketsAndAnotherTheAdminSocket) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  app::Config config = SmallConfig();
  config.socket_group = "users";
  Start(config);
  const auto users = transport::FindGroup("users");
  ASSERT_TRUE(users.ok());
  for (const char* name : {"fd.sock", "session.sock"}) {
    struct stat info;
    ASSERT_EQ(stat((run_dir_ + "/" + name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0660u) << name;
    EXPECT_EQ(info.st_gid, *users) << name;
  }
  struct stat admin;
  ASSERT_EQ(stat((run_dir_ + "/admin.sock").c_str(), &admin), 0);
  EXPECT_EQ(admin.st_mode & 0777, 0600u);
}

TEST_F(StartTest, OccupiedMetricsAddressIsRefused) {
  app::Config config = SmallConfig();
  config.metrics_address = "127.0.0.1:0";
  Start(config);
  config.metrics_address = daemon_->metrics_address();
  config.run_dir = dir_ + "/other";
  const auto second = app::Daemon::Start(config, log_);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(config.metrics_address));
}

TEST_F(StartTest, OccupiedStatusAddressIsNoReasonNotToServeJobs) {
  app::Config config = SmallConfig();
  config.status_address = "127.0.0.1:0";
  Start(config);
  const std::string address = daemon_->status_address();
  EXPECT_THAT(HttpGet(address, "/api/status"), HasSubstr("\"host0\""));
  config.status_address = address;
  config.run_dir = dir_ + "/other";
  const auto second = app::Daemon::Start(config, log_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->status_address(), "");
}

TEST_F(StartTest, StateFileRecordsLiveSessionsAndTheNextEpochFollows) {
  Start();
  TestClient client(run_dir_);
  client.Join("a");
  ASSERT_TRUE(client.Acquire(1, 4 << 20).has_granted());
  const uint64_t epoch = client.epoch();
  daemon_->Stop();
  const auto state = app::LoadState(run_dir_ + "/state.json");
  ASSERT_TRUE(state.ok() && state->has_value()) << state.status();
  ASSERT_EQ((*state)->sessions.size(), 1u);
  const app::RecordedSession& session = (*state)->sessions[0];
  EXPECT_EQ(session.job, "a");
  EXPECT_EQ(session.pid, getpid());
  ASSERT_EQ(session.held.size(), 1u);
  EXPECT_EQ(session.held[0].second, MiB(4));
  daemon_ = nullptr;
  // The process (this one) lives: what it holds stays reserved.
  Start();
  EXPECT_TRUE(Await([](const core::Status& status) {
    return status.devices[0].orphan == MiB(4);
  }));
  TestClient other(run_dir_);
  ASSERT_TRUE(other.ConnectDescriptors().ok());
  EXPECT_EQ(other.epoch(), epoch + 1);
}

TEST_F(StartTest, StateOfAnotherVersionIsIgnoredWithAWarning) {
  std::filesystem::create_directory(run_dir_);
  std::ofstream(run_dir_ + "/state.json") << "{\"version\": 99}";
  Start();
}

TEST_F(StartTest, StoppingSaysByeToTheJobs) {
  Start();
  TestClient client(run_dir_);
  client.Join("a");
  daemon_->Stop();
  const v1::DaemonMessage bye = client.ReadUntil(v1::DaemonMessage::kBye);
  ASSERT_TRUE(bye.has_bye());
  EXPECT_TRUE(bye.bye().restarting());
  EXPECT_TRUE(absl::IsUnavailable(client.Finish()));
}

// Names of the table rows "| `mets_…` | type |" of the document.
std::set<std::string> DocumentedMetrics() {
  std::ifstream file(METS_METRICS_DOCUMENT);
  EXPECT_TRUE(file) << METS_METRICS_DOCUMENT;
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `mets_", 0) != 0) continue;
    const size_t name_end = line.find('`', 3);
    const size_t type_end = line.find(" |", name_end + 4);
    names.insert(line.substr(3, name_end - 3) + " " +
                 line.substr(name_end + 4, type_end - name_end - 4));
  }
  return names;
}

TEST_F(StartTest, DocumentListsExactlyTheMetricsServed) {
  app::Config config = SmallConfig();
  config.metrics_address = "127.0.0.1:0";
  Start(config);
  TestClient client(run_dir_);
  client.Join("my-job");
  ASSERT_TRUE(client.Acquire(1, 4 << 20).has_granted());
  const std::string page = HttpGet(daemon_->metrics_address(), "/metrics");
  std::set<std::string> served;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE mets_", 0) == 0) served.insert(line.substr(7));
  }
  EXPECT_EQ(served, DocumentedMetrics());
  EXPECT_THAT(page, HasSubstr("mets_device_pool_bytes{device=\"host0\"} "
                              "16777216"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "mets_job_resident_bytes{device=\"host0\",job=\"my-job\"} 4194304"));
}

TEST_F(StartTest, AListenerFixesJobDomainAndCapsOfItsSessions) {
  app::Config config = SmallConfig();
  const std::string tenant = dir_ + "/tenant";
  std::filesystem::create_directory(tenant);
  app::ListenerSpec listener;
  listener.dir = tenant;
  listener.job = "fixed";
  listener.caps.max_limit = MiB(4);
  config.listeners = {listener};
  Start(std::move(config));
  TestClient inside(tenant), outside(run_dir_);
  inside.Join("mine");
  outside.Join("mine");
  EXPECT_TRUE(inside.Acquire(1, 4 << 20).has_granted());
  EXPECT_TRUE(inside.Acquire(2, 1 << 20).has_denied());
  EXPECT_TRUE(outside.Acquire(1, 8 << 20).has_granted());
  const core::Status status = daemon_->GetStatus();
  ASSERT_EQ(status.jobs.size(), 2u);
  const bool first = status.jobs[0].name == "fixed";
  const core::JobStatus& fixed = status.jobs[first ? 0 : 1];
  const core::JobStatus& mine = status.jobs[first ? 1 : 0];
  EXPECT_EQ(fixed.name, "fixed");
  EXPECT_EQ(fixed.limit, MiB(4));
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(fixed.uid, mine.uid);
  EXPECT_FALSE(fixed.domain == mine.domain);
  daemon_->Stop();
  EXPECT_TRUE(std::filesystem::is_empty(tenant));
}

TEST_F(StartTest, AListenerWithoutADirectoryIsNamed) {
  app::Config config = SmallConfig();
  config.listeners.resize(1);
  config.listeners[0].dir = dir_ + "/none";
  EXPECT_THAT(ErrorOf(std::move(config)), HasSubstr(dir_ + "/none"));
}

UniqueFd Bound(const std::string& path, int type) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd bound(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  EXPECT_EQ(
      bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  EXPECT_EQ(listen(bound.get(), 16), 0);
  return bound;
}

TEST_F(StartTest, SocketsThatSystemdHasBoundAreUsedAndStay) {
  std::filesystem::create_directory(run_dir_);
  app::ServiceManager::Passed passed;
  passed.sockets.fd = Bound(run_dir_ + "/fd.sock", SOCK_SEQPACKET);
  passed.sockets.session = Bound(run_dir_ + "/session.sock", SOCK_STREAM);
  auto daemon = app::Daemon::Start(SmallConfig(), log_, std::move(passed));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  {
    TestClient client(run_dir_);
    client.Join("a");
    EXPECT_TRUE(client.Acquire(1, 1 << 20).has_granted());
  }
  daemon_->Stop();
  EXPECT_TRUE(std::filesystem::exists(run_dir_ + "/fd.sock"));
  EXPECT_TRUE(std::filesystem::exists(run_dir_ + "/session.sock"));
  EXPECT_FALSE(std::filesystem::exists(run_dir_ + "/admin.sock"));
}

TEST_F(StartTest, ItsThreadsAnswerTheWatchdog) {
  Start();
  EXPECT_TRUE(daemon_->AnswersWithin(absl::Seconds(10)));
}

}  // namespace
}  // namespace mets
