// Daemon: metsd, put together.
#ifndef METS_DAEMON_APP_DAEMON_H_
#define METS_DAEMON_APP_DAEMON_H_

#include <spdlog/logger.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "daemon/app/config/config.h"
#include "daemon/app/decisions/decision_log.h"
#include "daemon/app/decisions/event_journal.h"
#include "daemon/app/engine.h"
#include "daemon/app/operator_desk.h"
#include "daemon/app/plan_worker.h"
#include "daemon/app/recovery/recovery.h"
#include "daemon/app/recovery/state_file.h"
#include "daemon/app/recovery/state_writer.h"
#include "daemon/app/service_manager.h"
#include "daemon/app/store/pool_keeper.h"
#include "daemon/memory/memory_manager.h"
#include "daemon/status_page/status_page.h"
#include "daemon/telemetry/metrics_server.h"
#include "daemon/transport/transport.h"

namespace mets::app {

// Owns and connects the parts: an engine that drives the core, the memory
// manager, the transport, the state file and the metrics. Runs in its own
// threads from Start to Stop (or the destructor). The logger is borrowed.
class Daemon {
 public:
  // An error names what is wrong and what to do; nothing is left running then.
  // `passed`: sockets that are bound already, and what was kept for this
  // daemon.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      Config config, spdlog::logger& log, ServiceManager::Passed passed = {});
  ~Daemon();

  // Says Bye to every job, stops, and removes the sockets. The state file
  // stays while processes live that hold memory, or a device is drained.
  void Stop();

  // Takes over what can change without a restart; logs what cannot.
  void Reload(const Config& config);

  // Whether the threads that decide and that watch processes answer.
  bool AnswersWithin(absl::Duration time);

  const Config& config() const { return config_; }
  transport::SocketPaths sockets() const { return transport_->paths(); }
  // Empty: metrics are not served.
  std::string metrics_address() const;
  // Empty: there is no status page.
  std::string status_address() const;
  core::Status GetStatus() const { return engine_->GetStatus(); }

 private:
  Daemon(Config config, spdlog::logger& log);

  absl::Status Init(ServiceManager::Passed passed);
  // From what was kept, where that serves, else from what `recovery` says,
  // which is of this start afterwards.
  absl::Status MakePool(std::optional<KeptPool> kept, Recovery* recovery);
  absl::Status MakePool(const Recovery& recovery, KeptPool* kept);
  absl::StatusOr<std::vector<memory::ManagedDevice>> OpenDevices();
  absl::Status MakeCore(const Recovery& recovery, const KeptPool* kept,
                        core::CoreConfig config);
  void RestoreSettings(const core::OperatorSettings& settings,
                       const std::vector<core::DeviceConfig>& devices);
  absl::Status MakeTransport(Recovery recovery,
                             transport::PassedSockets passed);
  void StartStatusPage();
  void MakeStateWriter();
  SavedState CurrentState() const;
  std::string state_path() const { return config_.run_dir + "/state.json"; }

  Config config_;
  spdlog::logger& log_;
  const RealClock clock_;
  absl::Time started_;
  Epoch epoch_;
  bool stopped_ = false;
  // Until the sockets are ours, the state file is another daemon's.
  std::atomic<bool> serving_{false};
  DecisionLog events_;
  std::unique_ptr<EventJournal> journal_;
  std::unique_ptr<PoolKeeper> keeper_;  // Null: nobody would keep anything.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<memory::MemoryManager> memory_;
  std::unique_ptr<PlanWorker> planner_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<OperatorDesk> desk_;
  std::unique_ptr<StateWriter> writer_;
  std::unique_ptr<telemetry::MetricsServer> metrics_;
  std::unique_ptr<status_page::StatusPage> status_page_;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_DAEMON_H_
