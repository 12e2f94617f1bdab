#include "daemon/app/daemon.h"

#include <grp.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/app/config/command_line.h"
#include "daemon/app/config/session_rules.h"

namespace mets::app {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(1);
constexpr char kDefaultGroup[] = "mets";

// Who may use a socket: the daemon's user, and a group. An ordinary user shares
// with one that it names and is a member of.
absl::StatusOr<transport::SocketAccess> AccessFor(const std::string& key,
                                                  const std::string& group,
                                                  const char* fallback) {
  transport::SocketAccess access;
  if (group.empty()) {
    if (fallback == nullptr || geteuid() != 0) return access;
    const absl::StatusOr<gid_t> found = transport::FindGroup(fallback);
    if (!found.ok()) return access;
    access.group = *found;
  } else {
    const absl::StatusOr<gid_t> found = transport::FindGroup(group);
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": ", found.status().message()));
    }
    access.group = *found;
  }
  access.mode = 0660;
  return access;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    Config config, spdlog::logger& log, ServiceManager::Passed passed) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(config), log));
  METS_RETURN_IF_ERROR(daemon->Init(std::move(passed)));
  return daemon;
}

Daemon::Daemon(Config config, spdlog::logger& log)
    : config_(std::move(config)), log_(log) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Init(ServiceManager::Passed passed) {
  started_ = clock_.Now();
  METS_RETURN_IF_ERROR(transport::PrepareRunDir(config_.run_dir));
  METS_RETURN_IF_ERROR(CheckListeners(config_));
  if (!passed.sockets.session.ok()) {
    METS_RETURN_IF_ERROR(transport::ClearSocketPath(
        transport::SocketsIn(config_.run_dir).session));
  }
  Recovery recovery = Recover(state_path());
  if (!recovery.warning.empty()) log_.warn("{}", recovery.warning);
  std::optional<KeptPool> kept;
  if (DescriptorStore::Exists()) {
    keeper_ = std::make_unique<PoolKeeper>(std::move(passed.kept), log_);
    kept = keeper_->TakeBack();
  }
  METS_RETURN_IF_ERROR(MakePool(std::move(kept), &recovery));
  METS_RETURN_IF_ERROR(
      MakeTransport(std::move(recovery), std::move(passed.sockets)));
  MakeStateWriter();
  desk_ = std::make_unique<OperatorDesk>(log_, *transport_);
  journal_ = std::make_unique<EventJournal>(events_, log_);
  engine_->set_on_events([this](std::vector<core::Event> events) {
    events_.Add(std::move(events));
  });
  engine_->Start(*transport_, *memory_, *planner_, *desk_);
  METS_RETURN_IF_ERROR(transport_->Start());
  serving_ = true;
  if (keeper_ != nullptr) keeper_->NoteServing();
  writer_->Changed(/*urgent=*/true);
  StartStatusPage();
  if (config_.metrics_address.empty()) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(metrics_, telemetry::MetricsServer::Start(
                                      config_.metrics_address, *engine_,
                                      {VersionText(), started_}));
  return absl::OkStatus();
}

absl::Status Daemon::MakeTransport(Recovery recovery,
                                   transport::PassedSockets passed) {
  transport::TransportOptions options;
  options.run_dir = config_.run_dir;
  options.passed = std::move(passed);
  options.epoch = epoch_;
  options.version = VersionText();
  METS_ASSIGN_OR_RETURN(
      options.session_access,
      AccessFor("socket-group", config_.socket_group, kDefaultGroup));
  METS_ASSIGN_OR_RETURN(options.admin_access,
                        AccessFor("admin-group", config_.admin_group, nullptr));
  options.on_lost = [this](const std::string& path) {
    log_.warn("somebody has removed {}: no process can connect there", path);
  };
  options.on_renewed = [this](const std::string& path) {
    log_.info("{} is there again", path);
    writer_->Changed(/*urgent=*/true);
  };
  options.registry.first_session = recovery.first_session;
  options.registry.caps = MakeCapRules(config_);
  options.registry.listeners = MakeListenerRules(config_);
  for (const ListenerSpec& listener : config_.listeners) {
    options.listener_dirs.push_back(listener.dir);
  }
  for (LiveSession& session : recovery.sessions) {
    const RecordedSession& record = session.record;
    const transport::SessionIdentity identity = {
        record.session, {record.uid, record.pid, record.start_time}};
    if (session.kept) {
      options.registry.kept.push_back({identity, record.job});
    } else {
      options.registry.expected.push_back(identity);
    }
    options.expected.push_back({record.session, std::move(session.pidfd)});
  }
  transport_ = std::make_unique<transport::Transport>(
      std::move(options), *engine_, *memory_, *engine_, events_, clock_);
  return absl::OkStatus();
}

void Daemon::MakeStateWriter() {
  StateWriter::Options options;
  options.path = state_path();
  options.render = [this] { return FormatState(CurrentState()); };
  options.on_outcome = [this](const absl::Status& status) {
    if (status.ok()) {
      log_.info("{} is written again", state_path());
      return;
    }
    log_.warn(
        "{}; until it can be written, a restart does not know what jobs hold "
        "and what operators have said: make room there",
        std::string(status.message()));
  };
  writer_ = std::make_unique<StateWriter>(std::move(options));
  engine_->set_on_change([this](bool urgent) {
    if (serving_) writer_->Changed(urgent);
  });
}

SavedState Daemon::CurrentState() const {
  absl::flat_hash_map<SessionId, transport::ProcessIdentity> processes;
  for (const transport::SessionIdentity& identity : transport_->Identities()) {
    processes[identity.session] = identity.process;
  }
  const core::Status status = engine_->GetStatus();
  SavedState state;
  state.epoch = epoch_;
  state.settings = status.settings;
  if (!status.devices.empty()) {
    state.swap =
        status.devices.front().swap_used + status.devices.front().swap_clean;
  }
  for (const core::SessionHolding& holding : status.sessions) {
    const auto process = processes.find(holding.session);
    if (process == processes.end()) continue;
    state.sessions.push_back({holding.session, holding.domain, holding.job,
                              process->second.uid, process->second.pid,
                              process->second.start_time, holding.held});
  }
  return state;
}

void Daemon::Reload(const Config& config) {
  for (const std::string& key : KeysThatNeedARestart(config_, config)) {
    log_.warn("reload: '{}' has changed, which needs a restart", key);
  }
  transport_->SetCaps(MakeCapRules(config));
  log_.set_level(spdlog::level::from_str(config.log_level));
  log_.info("reloaded: caps are those of jobs that begin from now on");
}

bool Daemon::AnswersWithin(absl::Duration time) {
  return engine_->AnswersWithin(time / 2) &&
         transport_->AnswersWithin(time / 2);
}

// A port in use (a second daemon's, say) is no reason not to serve jobs.
void Daemon::StartStatusPage() {
  if (config_.status_address.empty()) return;
  auto page = status_page::StatusPage::Start(
      {config_.status_address, VersionText()}, *engine_, events_, clock_);
  if (page.ok()) {
    status_page_ = *std::move(page);
  } else {
    log_.warn("{}", std::string(page.status().message()));
  }
}

std::string Daemon::status_address() const {
  return status_page_ == nullptr ? "" : status_page_->address();
}

std::string Daemon::metrics_address() const {
  return metrics_ == nullptr ? "" : metrics_->address();
}

void Daemon::Stop() {
  if (stopped_) return;
  stopped_ = true;
  if (engine_ != nullptr) {
    engine_->Post(core::Stop{});
    engine_->Stop();
  }
  if (transport_ != nullptr) transport_->Stop(kStopGrace);
  if (serving_) {
    writer_->Stop();
    const SavedState state = CurrentState();
    if (state.sessions.empty() && state.settings.empty()) {
      unlink(state_path().c_str());
    }
  }
  status_page_ = nullptr;
  metrics_ = nullptr;  // Last: it waits for scrapes.
}

}  // namespace mets::app
