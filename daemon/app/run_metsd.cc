#include "daemon/app/run_metsd.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/print.h"
#include "daemon/app/config/check_config.h"
#include "daemon/app/config/command_line.h"
#include "daemon/app/daemon.h"
#include "daemon/app/service_manager.h"
#include "daemon/app/signals.h"

namespace mets::app {
namespace {

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "metsd: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

int Say(const std::string& text) {
  const absl::Status printed = Print(text);
  return printed.ok() ? 0 : Fail(printed, 1);
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
  const std::string page = daemon.status_address();
  log.info("ready: fd {} session {} admin {}{}{}", sockets.fd, sockets.session,
           sockets.admin,
           metrics.empty() ? "" : " metrics http://" + metrics + "/metrics",
           page.empty() ? "" : " status http://" + page + "/");
}

// gRPC and protobuf write to stderr what a client has sent, as it came: lines
// that look like metsd's own, as many as it likes.
void SilenceLibraries() {
  if (getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  google::protobuf::SetLogHandler(nullptr);
}

// Reads flags and file again.
void Reload(int argc, const char* const* argv, Daemon& daemon,
            spdlog::logger& log) {
  const absl::StatusOr<CommandLine> again = ParseCommandLine(argc, argv);
  if (again.ok()) {
    daemon.Reload(again->config);
  } else {
    log.error("cannot reload, everything stays as it is: {}",
              std::string(again.status().message()));
  }
}

// Until a signal stops the daemon; its number.
int Follow(int argc, const char* const* argv, Daemon& daemon,
           ServiceManager& manager, spdlog::logger& log) {
  const absl::Duration period = manager.watchdog_period();
  while (true) {
    const int signal = AwaitSignal(period);
    if (signal == SIGHUP) {
      manager.Reloading();
      Reload(argc, argv, daemon, log);
      manager.Ready();
    } else if (signal != 0) {
      return signal;
    } else if (daemon.AnswersWithin(period)) {
      manager.Alive();
    } else {
      log.error("metsd's own threads do not answer");
    }
  }
}

int Serve(int argc, const char* const* argv, Config config,
          spdlog::logger& log) {
  ServiceManager manager;
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(std::move(config), log, ServiceManager::TakePassed());
  if (!daemon.ok()) return Fail(daemon.status(), 1);
  LogReady(**daemon, log);
  manager.Ready();
  const int signal = Follow(argc, argv, **daemon, manager, log);
  log.info("stopping: signal {}", signal);
  manager.Stopping();
  (*daemon)->Stop();
  log.info("stopped");
  return 0;
}

int Check(const Config& config) {
  const absl::StatusOr<std::string> text = CheckConfig(config);
  if (!text.ok()) return Fail(text.status(), 2);
  return Say(*text);
}

}  // namespace

int RunMetsd(int argc, const char* const* argv) {
  absl::StatusOr<CommandLine> command_line = ParseCommandLine(argc, argv);
  if (!command_line.ok()) return Fail(command_line.status(), 2);
  if (!command_line->answer.empty()) {
    return Say(command_line->answer);
  }
  if (command_line->check) return Check(command_line->config);
  BlockSignals();
  RaiseDescriptorLimit();
  SilenceLibraries();
#ifdef NDEBUG
  // Debian builds Abseil so that each lock looks for cycles of locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  const std::shared_ptr<spdlog::logger> log =
      MakeLogger(command_line->config.log_level);
  return Serve(argc, argv, std::move(command_line->config), *log);
}

}  // namespace mets::app
