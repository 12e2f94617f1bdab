#include "daemon/app/run_metsd.h"

#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "daemon/app/command_line.h"
#include "daemon/app/daemon.h"
#include "daemon/app/signals.h"

namespace mets::app {
namespace {

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "metsd: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

std::shared_ptr<spdlog::logger> MakeLogger(const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>(
      "metsd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %l: %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  return logger;
}

void LogReady(const Daemon& daemon, spdlog::logger& log) {
  const transport::SocketPaths sockets = daemon.sockets();
  const std::string metrics = daemon.metrics_address();
  log.info("ready: fd {} session {} admin {}{}", sockets.fd, sockets.session,
           sockets.admin,
           metrics.empty() ? "" : " metrics http://" + metrics + "/metrics");
}

int Serve(Config config, spdlog::logger& log) {
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(std::move(config), log);
  if (!daemon.ok()) return Fail(daemon.status(), 1);
  LogReady(**daemon, log);
  sd_notify(0, "READY=1\nSTATUS=Serving");
  const int signal = AwaitStopSignal();
  log.info("stopping: signal {}", signal);
  sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
  (*daemon)->Stop();
  log.info("stopped");
  return 0;
}

}  // namespace

int RunMetsd(int argc, const char* const* argv) {
  absl::StatusOr<CommandLine> command_line = ParseCommandLine(argc, argv);
  if (!command_line.ok()) return Fail(command_line.status(), 2);
  if (!command_line->answer.empty()) {
    std::fputs(command_line->answer.c_str(), stdout);
    return 0;
  }
  BlockSignals();
  RaiseDescriptorLimit();
  const std::shared_ptr<spdlog::logger> log =
      MakeLogger(command_line->config.log_level);
  return Serve(std::move(command_line->config), *log);
}

}  // namespace mets::app
