// DaemonFixture: a metsd in this process, in a directory of its own.
#ifndef METS_TESTS_DAEMON_APP_DAEMON_FIXTURE_H_
#define METS_TESTS_DAEMON_APP_DAEMON_FIXTURE_H_

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "daemon/app/daemon.h"

namespace mets {

class DaemonFixture : public ::testing::Test {
 protected:
  DaemonFixture()
      : log_("test", std::make_shared<spdlog::sinks::null_sink_mt>()) {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    run_dir_ = dir_ + "/run";
  }
  ~DaemonFixture() override {
    daemon_ = nullptr;
    std::filesystem::remove_all(dir_);
  }

  app::Config SmallConfig() const {
    app::Config config;
    config.run_dir = run_dir_;
    config.devices = {{"host", MiB(16)}};
    config.swap_space = MiB(64);
    config.recovery_grace = absl::Seconds(1);
    config.status_address = "";
    return config;
  }

  absl::Status TryStart(app::Config config) {
    auto daemon = app::Daemon::Start(std::move(config), log_);
    if (daemon.ok()) daemon_ = *std::move(daemon);
    return daemon.status();
  }
  void Start() { Start(SmallConfig()); }
  void Start(app::Config config) {
    const absl::Status status = TryStart(std::move(config));
    ASSERT_TRUE(status.ok()) << status;
  }

  // Waits (at most 10 s) until the daemon's state is as wanted.
  bool Await(const std::function<bool(const core::Status&)>& wanted) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (absl::Now() < deadline) {
      if (wanted(daemon_->GetStatus())) return true;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return false;
  }

  std::string dir_;
  std::string run_dir_;
  spdlog::logger log_;
  std::unique_ptr<app::Daemon> daemon_;
};

}  // namespace mets

#endif  // METS_TESTS_DAEMON_APP_DAEMON_FIXTURE_H_
