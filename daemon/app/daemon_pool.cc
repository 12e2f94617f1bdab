// Daemon: how it comes to its devices, its core and the memory that there is.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/device/cuda/cuda_devices.h"
#include "common/device/host/host_pool_driver.h"
#include "daemon/app/config/cuda_specs.h"
#include "daemon/app/config/machine_memory.h"
#include "daemon/app/daemon.h"
#include "daemon/policy/registry.h"

namespace mets::app {
namespace {

constexpr Bytes kExtentSize = GiB(1);

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
  result.idle_release = config.idle_release;
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
    device.moves = info.moves;
    if (info.bus_bytes_per_second > 0) {
      device.bus_bytes_per_second = info.bus_bytes_per_second;
    }
    const Bytes smallest = info.chunk_classes.front();
    device.pool = smallest * (info.total / smallest);
    result.devices.push_back(std::move(device));
  }
  return result;
}

}  // namespace

absl::Status Daemon::MakePool(std::optional<KeptPool> kept,
                              Recovery* recovery) {
  if (!kept.has_value()) return MakePool(*recovery, nullptr);
  const Config given = config_;
  absl::StatusOr<Recovery> with_kept = RecoverFrom(*kept, *recovery);
  absl::Status status = with_kept.status();
  if (status.ok()) status = MakePool(*with_kept, &*kept);
  if (status.ok()) {
    *recovery = *std::move(with_kept);
    return status;
  }
  memory_ = nullptr;
  planner_ = nullptr;
  engine_ = nullptr;
  config_ = given;
  recovery->epoch =
      std::max(recovery->epoch, Epoch(kept->basis.epoch.value() + 1));
  kept.reset();
  keeper_->Reject(status);
  return MakePool(*recovery, nullptr);
}

absl::Status Daemon::MakePool(const Recovery& recovery, KeptPool* kept) {
  epoch_ = recovery.epoch;
  METS_ASSIGN_OR_RETURN(const Bytes available, AvailableMemory(MemoryFiles()));
  METS_RETURN_IF_ERROR(
      SettleCudaDevices(CudaMachine(), recovery.held, &config_));
  METS_RETURN_IF_ERROR(
      // What running jobs hold of METS's own counts as available.
      FitToMachine(available + HeldHostMemory(recovery, config_), "available",
                   &config_));
  METS_ASSIGN_OR_RETURN(std::vector<memory::ManagedDevice> devices,
                        OpenDevices());
  core::CoreConfig config = CoreConfigFor(config_, epoch_, devices);
  config.changes = keeper_ != nullptr;
  METS_RETURN_IF_ERROR(MakeCore(recovery, kept, config));
  memory_ = std::make_unique<memory::MemoryManager>(
      std::move(devices), *engine_,
      keeper_ == nullptr ? nullptr : &keeper_->descriptors());
  if (kept != nullptr) {
    METS_RETURN_IF_ERROR(Adopt(*kept, config.devices, *memory_));
    log_.info("the pool is kept: {} chunks and {} extents",
              kept->state.chunks.size(), kept->state.extents.size());
  }
  if (keeper_ == nullptr) return absl::OkStatus();
  keeper_->Begin(kept == nullptr ? nullptr : std::move(kept->journal),
                 BasisOf(config), engine_->GetKept());
  engine_->set_on_changes([this](const std::vector<core::Change>& changes) {
    keeper_->Record(changes, [this] { return engine_->GetKept(); });
  });
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

void Daemon::RestoreSettings(const core::OperatorSettings& settings,
                             const std::vector<core::DeviceConfig>& devices) {
  if (settings.empty()) return;
  for (const std::string& device : settings.drained) {
    if (std::any_of(devices.begin(), devices.end(),
                    [&device](const core::DeviceConfig& configured) {
                      return configured.name == device;
                    })) {
      log_.info("{} is drained, as before: metsctl undrain {}", device, device);
    } else {
      log_.info("{} was drained, and is configured no more", device);
    }
  }
  for (const core::OperatorSettings::Job& job : settings.jobs) {
    if (!job.paused) continue;
    log_.info("job '{}' is paused, as before: metsctl resume {}", job.name,
              job.name);
  }
  engine_->Post(core::RestoreSettings{settings});
}

absl::Status Daemon::MakeCore(const Recovery& recovery, const KeptPool* kept,
                              core::CoreConfig config) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<core::VictimPolicy> policy,
                        policy::MakePolicy(config_.policy));
  if (kept != nullptr) {
    METS_RETURN_IF_ERROR(CheckBasis(kept->basis, config.devices));
  }
  const std::vector<core::DeviceConfig> configured = config.devices;
  auto core =
      std::make_unique<core::Core>(std::move(config), std::move(policy));
  if (kept != nullptr) {
    METS_RETURN_IF_ERROR(core->TakeOver(clock_.Now(), kept->state));
  }
  engine_ = std::make_unique<Engine>(std::move(core), clock_);
  METS_ASSIGN_OR_RETURN(policy, policy::MakePolicy(config_.policy));
  planner_ = std::make_unique<PlanWorker>(std::move(policy), *engine_);
  for (const LiveSession& session : recovery.sessions) {
    const RecordedSession& record = session.record;
    if (kept == nullptr) {
      engine_->Post(
          core::ExpectSession{record.session,
                              record.domain,
                              record.job,
                              record.held,
                              {record.uid, record.pid, record.start_time}});
    }
    log_.info("expecting job '{}' (pid {}) back", record.job, record.pid);
  }
  for (SessionId session : recovery.ended) {
    engine_->Post(core::SessionEnded{session});
    engine_->Post(core::ExpectedSessionGone{session});
  }
  RestoreSettings(recovery.settings, configured);
  return absl::OkStatus();
}

}  // namespace mets::app
