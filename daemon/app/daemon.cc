#include "daemon/app/daemon.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_devices.h"
#include "common/device/host/host_pool_driver.h"
#include "daemon/app/command_line.h"
#include "daemon/app/cuda_specs.h"
#include "daemon/app/machine_memory.h"
#include "daemon/app/session_rules.h"
#include "daemon/policy/registry.h"

namespace mets::app {
namespace {

constexpr Bytes kExtentSize = GiB(1);
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

std::string DeviceName(const DeviceSpec& spec, size_t number) {
  return spec.kind == "cuda" ? spec.id : absl::StrCat(spec.kind, number);
}

absl::StatusOr<std::unique_ptr<PoolDriver>> OpenPool(const DeviceSpec& spec) {
  if (spec.kind == "cuda") return OpenCudaPool(spec.id, spec.size);
  return std::make_unique<HostPoolDriver>(HostPoolOptions{spec.size});
}

// Memory of this machine that running jobs hold.
Bytes HeldHostMemory(const Recovery& recovery, const Config& config) {
  Bytes held = recovery.held_swap;
  for (const auto& [name, bytes] : recovery.held) {
    const bool gpu = std::any_of(
        config.devices.begin(), config.devices.end(),
        [&name = name](const DeviceSpec& spec) { return spec.id == name; });
    if (!gpu) held += bytes;
  }
  return held;
}

core::CoreConfig CoreConfigFor(
    const Config& config, Epoch epoch,
    const std::vector<memory::ManagedDevice>& devices) {
  core::CoreConfig result;
  result.epoch = epoch;
  result.swap_limit = *config.swap_space;
  result.extent_size = kExtentSize;
  result.order_timeout = config.order_timeout;
  result.recovery_grace = config.recovery_grace;
  result.plans = config.plans;
  result.events = true;
  result.moving_share = config.moving_share;
  result.max_wait = config.max_wait;
  result.interference_bound = config.interference_bound;
  for (size_t i = 0; i < devices.size(); ++i) {
    const PoolDriverInfo info = devices[i].driver->info();
    core::DeviceConfig device;
    device.id = devices[i].id;
    device.name = DeviceName(config.devices[i], i);
    device.kind = info.kind;
    device.chunk_classes = info.chunk_classes;
    const Bytes smallest = info.chunk_classes.front();
    device.pool = smallest * (info.total / smallest);
    result.devices.push_back(std::move(device));
  }
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    Config config, spdlog::logger& log, transport::PassedSockets passed) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(config), log));
  METS_RETURN_IF_ERROR(daemon->Init(std::move(passed)));
  return daemon;
}

Daemon::Daemon(Config config, spdlog::logger& log)
    : config_(std::move(config)), log_(log) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::Init(transport::PassedSockets passed) {
  started_ = clock_.Now();
  METS_RETURN_IF_ERROR(transport::PrepareRunDir(config_.run_dir));
  METS_RETURN_IF_ERROR(CheckListeners(config_));
  if (!passed.session.ok()) {
    METS_RETURN_IF_ERROR(transport::ClearSocketPath(
        transport::SocketsIn(config_.run_dir).session));
  }
  Recovery recovery = Recover(state_path());
  epoch_ = recovery.epoch;
  if (!recovery.warning.empty()) log_.warn("{}", recovery.warning);
  METS_ASSIGN_OR_RETURN(const Bytes available, AvailableMemory(MemoryFiles()));
  METS_RETURN_IF_ERROR(
      SettleCudaDevices(CudaMachine(), recovery.held, &config_));
  METS_RETURN_IF_ERROR(
      FitToMachine(available + HeldHostMemory(recovery, config_), &config_));
  METS_ASSIGN_OR_RETURN(std::vector<memory::ManagedDevice> devices,
                        OpenDevices());
  METS_RETURN_IF_ERROR(MakeCore(recovery, devices));
  memory_ =
      std::make_unique<memory::MemoryManager>(std::move(devices), *engine_);
  METS_RETURN_IF_ERROR(MakeTransport(std::move(recovery), std::move(passed)));
  MakeStateWriter();
  desk_ = std::make_unique<OperatorDesk>(log_, *transport_);
  journal_ = std::make_unique<EventJournal>(events_, log_);
  engine_->set_on_events([this](std::vector<core::Event> events) {
    events_.Add(std::move(events));
  });
  engine_->Start(*transport_, *memory_, *planner_, *desk_);
  METS_RETURN_IF_ERROR(transport_->Start());
  serving_ = true;
  writer_->Changed(/*urgent=*/true);
  StartStatusPage();
  if (config_.metrics_address.empty()) return absl::OkStatus();
  METS_ASSIGN_OR_RETURN(metrics_, telemetry::MetricsServer::Start(
                                      config_.metrics_address, *engine_,
                                      {VersionText(), started_}));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<memory::ManagedDevice>> Daemon::OpenDevices() {
  std::vector<memory::ManagedDevice> devices;
  for (const DeviceSpec& spec : config_.devices) {
    METS_ASSIGN_OR_RETURN(std::unique_ptr<PoolDriver> driver, OpenPool(spec));
    log_.info("device {}: {}", DeviceName(spec, devices.size()),
              FormatBytes(spec.size));
    devices.push_back({DeviceId(devices.size() + 1), std::move(driver)});
  }
  log_.info("swap space: {}", FormatBytes(*config_.swap_space));
  return devices;
}

absl::Status Daemon::MakeCore(
    const Recovery& recovery,
    const std::vector<memory::ManagedDevice>& devices) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<core::VictimPolicy> policy,
                        policy::MakePolicy(config_.policy));
  engine_ = std::make_unique<Engine>(
      std::make_unique<core::Core>(CoreConfigFor(config_, epoch_, devices),
                                   std::move(policy)),
      clock_);
  METS_ASSIGN_OR_RETURN(policy, policy::MakePolicy(config_.policy));
  planner_ = std::make_unique<PlanWorker>(std::move(policy), *engine_);
  for (const LiveSession& session : recovery.sessions) {
    const RecordedSession& record = session.record;
    engine_->Post(core::ExpectSession{record.session, record.domain, record.job,
                                      record.held});
    log_.info("expecting job '{}' (pid {}) back", record.job, record.pid);
  }
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
  options.registry.first_session = recovery.first_session;
  options.registry.caps = MakeCapRules(config_);
  options.registry.listeners = MakeListenerRules(config_);
  for (const ListenerSpec& listener : config_.listeners) {
    options.listener_dirs.push_back(listener.dir);
  }
  for (LiveSession& session : recovery.sessions) {
    const RecordedSession& record = session.record;
    options.registry.expected.push_back(
        {record.session, {record.uid, record.pid, record.start_time}});
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
  options.on_error = [this](const absl::Status& status) {
    log_.warn("{}; after a restart metsd will not know what jobs hold",
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
    if (CurrentState().sessions.empty()) unlink(state_path().c_str());
  }
  status_page_ = nullptr;
  metrics_ = nullptr;  // Last: it waits for scrapes.
}

}  // namespace mets::app
