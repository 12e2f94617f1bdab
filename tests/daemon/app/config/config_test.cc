#include "daemon/app/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "daemon/app/config/check_config.h"
#include "daemon/app/config/command_line.h"

namespace mets::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorIn(const std::string& text) {
  Config config;
  const absl::Status status = ReadConfigText("metsd.toml", text, &config);
  EXPECT_FALSE(status.ok()) << text;
  return std::string(status.message());
}

absl::StatusOr<CommandLine> ParseFlags(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "metsd");
  return ParseCommandLine(static_cast<int>(flags.size()), flags.data());
}

TEST(ConfigTest, EveryKeyIsRead) {
  Config config;
  const absl::Status status = ReadConfigText("metsd.toml", R"(
    run-dir = "/tmp/x/"
    device = ["host:2GiB", "host:512MiB"]
    swap-space = 4294967296
    policy = "lru"
    metrics-address = "127.0.0.1:9464"
    status-address = "127.0.0.1:8080"
    socket-group = "users"
    admin-group = "adm"
    log-level = "debug"
    order-timeout = "2s"
    recovery-grace = "500ms"
    idle-release = "never"
    interference-bound = "0.05"
  )",
                                             &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.run_dir, "/tmp/x");
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].size, GiB(2));
  EXPECT_EQ(config.devices[1].size, MiB(512));
  EXPECT_EQ(config.swap_space, GiB(4));
  EXPECT_EQ(config.metrics_address, "127.0.0.1:9464");
  EXPECT_EQ(config.status_address, "127.0.0.1:8080");
  EXPECT_EQ(config.socket_group, "users");
  EXPECT_EQ(config.admin_group, "adm");
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.order_timeout, absl::Seconds(2));
  EXPECT_EQ(config.recovery_grace, absl::Milliseconds(500));
  EXPECT_EQ(config.idle_release, absl::InfiniteDuration());
  EXPECT_EQ(config.interference_bound, 0.05);
}

TEST(ConfigTest, UnknownKeyIsNamedWithItsLineAndTheKnownOnes) {
  EXPECT_THAT(ErrorIn("\n\ncolour = \"red\"\n"),
              AllOf(HasSubstr("metsd.toml:3"), HasSubstr("'colour'"),
                    HasSubstr("swap-space"), HasSubstr("run-dir")));
}

TEST(ConfigTest, BrokenTomlIsNamedWithItsLine) {
  EXPECT_THAT(ErrorIn("policy = \"lru\"\ndevice = [\n"),
              HasSubstr("metsd.toml:"));
}

// One bad value for each key, and what the error must say.
struct BadValue {
  const char* line;
  const char* says;
};
class BadValueTest : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValueTest, IsRefusedWithKeyLineAndForm) {
  const std::string line = GetParam().line;
  const std::string key = line.substr(0, line.find(' '));
  EXPECT_THAT(ErrorIn("\n" + line),
              AllOf(HasSubstr("metsd.toml:2"), HasSubstr("'" + key + "'"),
                    HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    EachKey, BadValueTest,
    ::testing::Values(BadValue{"run-dir = true", "DIR"},
                      BadValue{"run-dir = \"\"", "path"},
                      BadValue{"device = \"tpu:2GiB\"", "host:2GiB"},
                      BadValue{"device = [\"host\"]", "host:2GiB"},
                      BadValue{"device = \"host:2 potatoes\"", "potatoes"},
                      BadValue{"device = \"host:1KiB\"", "at least"},
                      BadValue{"device = { size = 1 }", "list"},
                      BadValue{"device = \"host:1GiB:2GiB\"", "host:2GiB"},
                      BadValue{"device = \"cuda\"", "cuda:GPU"},
                      BadValue{"device = \"cuda:\"", "cuda:GPU"},
                      BadValue{"device = \"cuda:0:\"", "cuda:GPU"},
                      BadValue{"device = \"cuda:0:1GiB:1\"", "cuda:GPU"},
                      BadValue{"device = \"cuda:0:1MiB\"", "128 MiB"},
                      BadValue{"swap-space = \"much\"", "much"},
                      BadValue{"swap-space = 1.5", "SIZE"},
                      BadValue{"swap-space = -1", "-1"},
                      BadValue{"policy = \"\"", "empty"},
                      BadValue{"policy = [\"lru\"]", "NAME"},
                      BadValue{"metrics-address = \"9464\"", "HOST:PORT"},
                      BadValue{"status-address = \"no\"", "HOST:PORT"},
                      BadValue{"metrics-address = \"host:99999\"", "HOST:PORT"},
                      BadValue{"socket-group = \"\"", "empty"},
                      BadValue{"admin-group = false", "GROUP"},
                      BadValue{"log-level = \"loud\"", "warning"},
                      BadValue{"plans = \"maybe\"", "'off'"},
                      BadValue{"order-timeout = \"soon\"", "'5s'"},
                      BadValue{"order-timeout = \"-1s\"", "'5s'"},
                      BadValue{"recovery-grace = \"inf\"", "'5s'"},
                      BadValue{"idle-release = \"0\"", "'never'"},
                      BadValue{"max-priority = \"high\"", "whole number"},
                      BadValue{"max-guarantee = \"some\"", "some"},
                      BadValue{"max-limit = 0", "above 0"}));

TEST(CommandLineTest, FlagsComeBeforeTheFile) {
  const std::string file = ::testing::TempDir() + "/mets_config_test.toml";
  std::ofstream(file) << "device = [\"host:1GiB\", \"host:1GiB\"]\n"
                         "swap-space = \"1GiB\"\nrun-dir = \"/tmp/a\"\n";
  const auto line = ParseFlags({"--device", "host:64MiB", "--run-dir", "/tmp/b",
                                "--config", file.c_str()});
  ASSERT_TRUE(line.ok()) << line.status();
  ASSERT_EQ(line->config.devices.size(), 1u);
  EXPECT_EQ(line->config.devices[0].size, MiB(64));
  EXPECT_EQ(line->config.run_dir, "/tmp/b");
  EXPECT_EQ(line->config.swap_space, GiB(1));
}

TEST(CommandLineTest, DeviceMayBeGivenSeveralTimes) {
  const auto line =
      ParseFlags({"--device", "host:64MiB", "--device=host:32MiB"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.devices.size(), 2u);
}

TEST(CommandLineTest, GpuIsNamedByNumberOrUuidAndMayHaveASize) {
  const auto line = ParseFlags({"--device", "cuda:0", "--device",
                                "cuda:GPU-1f-2:40GiB", "--device=cuda:all"});
  ASSERT_TRUE(line.ok()) << line.status();
  ASSERT_EQ(line->config.devices.size(), 3u);
  EXPECT_EQ(line->config.devices[0].kind, "cuda");
  EXPECT_EQ(line->config.devices[0].id, "0");
  EXPECT_TRUE(line->config.devices[0].size.is_zero());
  EXPECT_EQ(line->config.devices[1].id, "GPU-1f-2");
  EXPECT_EQ(line->config.devices[1].size, GiB(40));
  EXPECT_EQ(line->config.devices[2].id, "all");
}

TEST(CommandLineTest, BadFlagsAreNamed) {
  EXPECT_THAT(std::string(ParseFlags({"--swap-space", "x"}).status().message()),
              HasSubstr("--swap-space"));
  EXPECT_THAT(std::string(ParseFlags({"--colour"}).status().message()),
              HasSubstr("--colour"));
  EXPECT_THAT(
      std::string(ParseFlags({"--config", "/no/such"}).status().message()),
      HasSubstr("/no/such"));
}

TEST(CommandLineTest, HelpListsEveryKey) {
  const auto line = ParseFlags({"--help"});
  ASSERT_TRUE(line.ok());
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_THAT(line->answer, HasSubstr(std::string("--") + key.name));
  }
  EXPECT_THAT(line->answer, HasSubstr("exit status"));
}

TEST(CommandLineTest, ExampleFileIsValid) {
  Config config;
  const absl::Status status = ReadConfigFile(METS_CONFIG_EXAMPLE, &config);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(config.given.empty()) << "a key is not commented out";
}

// The example with every key and table in effect.
std::string Uncommented() {
  std::ifstream file(METS_CONFIG_EXAMPLE);
  std::string text, line;
  while (std::getline(file, line)) {
    const size_t name_end =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", 2);
    const bool key = line.rfind("# ", 0) == 0 && name_end != line.npos &&
                     name_end > 2 && line.compare(name_end, 3, " = ") == 0;
    const bool table = line.rfind("# [[", 0) == 0;
    text += (key || table ? line.substr(2) : line) + "\n";
  }
  return text;
}

TEST(CommandLineTest, ExampleFileNamesEveryKeyWithAGoodValue) {
  Config config;
  const absl::Status status =
      ReadConfigText("metsd.toml", Uncommented(), &config);
  ASSERT_TRUE(status.ok()) << status;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_EQ(config.given.count(key.name), 1u) << key.name;
  }
  ASSERT_EQ(config.domains.size(), 1u);
  ASSERT_EQ(config.listeners.size(), 1u);
  for (const auto& key : DomainKeys()) {
    EXPECT_THAT(config.given["domain"][0],
                HasSubstr(std::string(key.name) + "="));
  }
  for (const auto& key : ListenerKeys()) {
    EXPECT_THAT(config.given["listener"][0],
                HasSubstr(std::string(key.name) + "="));
  }
}

TEST(ConfigTest, TablesAreRead) {
  Config config;
  const absl::Status status = ReadConfigText("metsd.toml", R"(
    max-priority = 3
    [[domain]]
    user = 1000
    max-limit = "2GiB"
    [[listener]]
    dir = "/run/tenants/a/"
    job = "a"
    [[listener]]
    dir = "/run/tenants/b"
    domain = "b"
    max-guarantee = "1GiB"
  )",
                                             &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.caps.max_priority, 3);
  ASSERT_EQ(config.domains.size(), 1u);
  EXPECT_EQ(config.domains[0].uid, 1000u);
  EXPECT_EQ(config.domains[0].caps.max_limit, GiB(2));
  EXPECT_FALSE(config.domains[0].caps.max_priority.has_value());
  ASSERT_EQ(config.listeners.size(), 2u);
  EXPECT_EQ(config.listeners[0].dir, "/run/tenants/a");
  EXPECT_EQ(config.listeners[0].job, "a");
  EXPECT_EQ(config.listeners[1].domain, "b");
  EXPECT_EQ(config.listeners[1].caps.max_guarantee, GiB(1));
}

TEST(ConfigTest, FaultsInTablesAreNamedWithTheirLine) {
  EXPECT_THAT(ErrorIn("[[listener]]\njob = \"a\"\n"),
              AllOf(HasSubstr("metsd.toml:1"), HasSubstr("'dir'")));
  EXPECT_THAT(ErrorIn("[[listener]]\ndir = \"/a\"\njob = \"a b\"\n"),
              AllOf(HasSubstr("metsd.toml:3"), HasSubstr("'job'")));
  EXPECT_THAT(ErrorIn("[[domain]]\nuser = \"1\"\ncolour = 1\n"),
              AllOf(HasSubstr("metsd.toml:3"), HasSubstr("max-priority")));
  EXPECT_THAT(ErrorIn("[[domain]]\nuser = \"no such user\"\n"),
              HasSubstr("no such user"));
  EXPECT_THAT(ErrorIn("domain = 1\n"), HasSubstr("[[domain]]"));
  EXPECT_THAT(
      ErrorIn("[[domain]]\nuser = \"root\"\n[[domain]]\nuser = \"0\"\n"),
      HasSubstr("two [[domain]] tables are for user 0"));
}

TEST(ConfigTest, AReloadNamesWhatItCannotChange) {
  Config now, next;
  ASSERT_TRUE(ReadConfigText("a", "policy = \"lru\"\n", &now).ok());
  ASSERT_TRUE(ReadConfigText("b",
                             "policy = \"next_use\"\nmax-limit = \"1GiB\"\n"
                             "[[listener]]\ndir = \"/a\"\n",
                             &next)
                  .ok());
  EXPECT_THAT(KeysThatNeedARestart(now, next),
              ::testing::ElementsAre("policy", "listener"));
  EXPECT_TRUE(KeysThatNeedARestart(now, now).empty());
}

TEST(CheckConfigTest, SaysWhatWouldBeRefused) {
  Config good;
  good.run_dir = "/dev/mets";
  EXPECT_TRUE(CheckConfig(good).ok()) << CheckConfig(good).status();
  Config config = good;
  config.policy = "no_such";
  EXPECT_THAT(std::string(CheckConfig(config).status().message()),
              HasSubstr("no_such"));
  config = good;
  config.admin_group = "no such group";
  EXPECT_THAT(std::string(CheckConfig(config).status().message()),
              AllOf(HasSubstr("admin-group"), HasSubstr("no such group")));
  config = good;
  config.listeners = {{"/no/such/folder", "", "", {}}};
  EXPECT_THAT(std::string(CheckConfig(config).status().message()),
              HasSubstr("/no/such/folder"));
  config = good;
  config.run_dir = "/dev/" + std::string(100, 'x');
  EXPECT_THAT(std::string(CheckConfig(config).status().message()),
              HasSubstr("too long"));
  config = good;
  config.devices = {{"host", GiB(999999999)}};
  EXPECT_THAT(std::string(CheckConfig(config).status().message()),
              AllOf(HasSubstr("takes 976562 TiB"), HasSubstr("in all")));
}

}  // namespace
}  // namespace mets::app
