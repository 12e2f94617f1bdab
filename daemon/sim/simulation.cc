#include "daemon/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/core/planning/planner.h"

namespace mets::sim {
namespace {

constexpr char kDevice[] = "device0";
constexpr uint64_t kEventsPerProgress = 1 << 14;
constexpr double kStopped = 600;
constexpr double kPlanning = 0.02;  // Seconds that a plan takes to make.
constexpr uint64_t kMostEvents = 200'000;
constexpr size_t kMostNumberedName = 50;

// Bytes that one op uses at once, at most.
Bytes LargestOp(const JobProgram& program) {
  Bytes largest;
  for (const JobOp& op : program.ops) {
    Bytes bytes;
    for (const steps::Access& access : op.accesses) {
      bytes += program.buffers[access.buffer].RoundUpTo(kSmallestChunk);
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

class Simulator {
 public:
  Simulator(const std::vector<SimJob>& jobs, const SimOptions& options)
      : jobs_(jobs),
        options_(options),
        machine_(&world_, options.costs),
        clients_(jobs.size()) {}

  absl::Status Start() {
    Bytes small;
    for (const SimJob& job : jobs_) small += job.program->small_peak;
    core::CoreConfig config;
    config.epoch = Epoch(1);
    core::DeviceConfig device;
    device.id = DeviceId(1);
    device.name = kDevice;
    device.kind = "host";
    device.chunk_classes = {kSmallestChunk, KiB(256), MiB(1), MiB(4), MiB(16)};
    device.pool =
        kSmallestChunk * ((options_.device_memory - small) / kSmallestChunk);
    if (device.pool <= Bytes()) {
      if (small.is_zero()) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "a device of ", FormatBytes(options_.device_memory),
            " has no room for one chunk of ", FormatBytes(kSmallestChunk)));
      }
      return absl::ResourceExhaustedError(absl::StrCat(
          "the jobs' small allocations alone need ", FormatBytes(small),
          " of the device's ", FormatBytes(options_.device_memory)));
    }
    device.bus_bytes_per_second = options_.costs.bus_bytes_per_second;
    device.moves = options_.costs.moves;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      const Bytes largest = LargestOp(*jobs_[i].program);
      if (largest <= device.pool) continue;
      return absl::ResourceExhaustedError(absl::StrCat(
          "an op of job '", JobName(i), "' uses ", FormatBytes(largest),
          " at once, more than the device's ", FormatBytes(device.pool),
          small.is_zero() ? ""
                          : absl::StrCat(" (small allocations, ",
                                         FormatBytes(small), ", taken off)")));
    }
    config.devices.push_back(device);
    config.swap_limit = GiB(1 << 10);
    config.extent_size = GiB(4);
    config.order_timeout = absl::Seconds(60);
    config.plans = options_.plans;
    config.interference_bound = options_.interference_bound;
    config.fixed_quantum = absl::Seconds(options_.fixed_quantum);
    config.max_wait =
        std::max(config.max_wait,
                 2 * static_cast<int64_t>(jobs_.size()) * config.fixed_quantum);
    core_ = std::make_unique<core::Core>(config, options_.policy());
    planning_ = options_.policy();
    for (size_t i = 0; i < jobs_.size(); ++i) {
      world_.At(jobs_[i].start, [this, i] { Open(i); });
    }
    if (options_.sample_every > 0) Sample();
    return absl::OkStatus();
  }

  absl::StatusOr<SimResult> Run() {
    for (uint64_t events = 0; !AllDone() && world_.RunNext(); ++events) {
      if (events % kEventsPerProgress == 0) ShowProgress();
      if (!Progresses()) break;
      for (const auto& client : clients_) {
        if (client != nullptr && !client->result().error.empty()) {
          return absl::ResourceExhaustedError(client->result().error);
        }
      }
    }
    if (!AllDone()) {
      return absl::InternalError(absl::StrCat(
          "the simulated jobs stopped each other at ", world_.now(), " s"));
    }
    ShowProgress();
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const auto& client : clients_) {
      result_.jobs.push_back(client->result());
      first = std::min(first, client->result().started);
      last = std::max(last, client->result().ended);
    }
    result_.seconds = last - first;
    return std::move(result_);
  }

 private:
  void Open(size_t i) {
    const SessionId session(i + 1);
    clients_[i] = std::make_unique<SimClient>(
        &world_, &machine_, *jobs_[i].program, session, kDevice,
        [this](core::Input input) { Send(std::move(input)); });
    core::SessionOpened opened;
    opened.session = session;
    opened.domain = DomainId(1);
    opened.job = JobName(i);
    opened.priority = jobs_[i].priority;
    opened.weight = jobs_[i].weight;
    opened.limit = jobs_[i].limit;
    opened.guarantee = jobs_[i].guarantee;
    Step(opened);
    clients_[i]->Start();
  }

  // False when all jobs that have begun have waited for kStopped seconds of
  // virtual time in which nothing was copied, or when nothing goes on but
  // kMostEvents events.
  bool Progresses() {
    size_t ops = 0;
    bool waits = false, computes = false;
    for (const auto& client : clients_) {
      if (client == nullptr) continue;
      ops += client->ops_done();
      if (client->result().done) continue;
      (client->waits() ? waits : computes) = true;
    }
    const bool goes_on = computes || !waits;
    if (goes_on || machine_.in.busy() || machine_.out.busy()) {
      progressed_ = world_.now();
    }
    const bool later = goes_on && world_.now() > counted_from_ + 1;
    if (ops != std::exchange(ops_done_, ops) || later) {
      counted_from_ = world_.now();
      events_since_ = 0;
    }
    return world_.now() - progressed_ < kStopped &&
           ++events_since_ < kMostEvents;
  }

  // Sessions of one name would be one job: jobs of one name are numbered, and
  // then all are, so that no other has that name.
  std::string JobName(size_t i) const {
    std::set<std::string> names;
    for (const SimJob& job : jobs_) names.insert(job.program->name);
    const std::string& name = jobs_[i].program->name;
    if (names.size() == jobs_.size()) return name;
    return absl::StrCat(i + 1, ".", name.substr(0, kMostNumberedName));
  }

  void ShowProgress() const {
    if (!options_.progress) return;
    double done = 0, all = 0;
    for (size_t i = 0; i < jobs_.size(); ++i) {
      all += static_cast<double>(jobs_[i].program->ops.size());
      if (clients_[i] != nullptr) {
        done += static_cast<double>(clients_[i]->ops_done());
      }
    }
    options_.progress(done / all);
  }

  bool AllDone() const {
    return std::all_of(clients_.begin(), clients_.end(), [](const auto& c) {
      return c != nullptr && c->result().done;
    });
  }

  void Send(core::Input input) {
    world_.After(options_.costs.message,
                 [this, input = std::move(input)] { Step(input); });
  }

  void Step(const core::Input& input) {
    for (core::Action& action : core_->Step(world_.time(), input)) {
      if (auto* memory = std::get_if<core::MemoryAction>(&action)) {
        Perform(*memory);
      } else if (auto* task = std::get_if<core::PlanTask>(&action)) {
        world_.After(kPlanning, [this, made = core::MakePlan(
                                           *task, *planning_)] { Step(made); });
      } else if (auto* order = std::get_if<core::SessionAction>(&action)) {
        Deliver(*order);
      }
    }
    ScheduleTick();
  }

  void Perform(const core::MemoryAction& action) {
    if (auto* a = std::get_if<core::CreateChunk>(&action)) {
      Now(core::ChunkCreated{a->chunk, {}});
    } else if (auto* a = std::get_if<core::DestroyChunk>(&action)) {
      Now(core::ChunkDestroyed{a->chunk, {}});
    } else if (auto* a = std::get_if<core::CreateExtent>(&action)) {
      Now(core::ExtentCreated{a->extent, {}});
    } else if (auto* a = std::get_if<core::DestroyExtent>(&action)) {
      Now(core::ExtentDestroyed{a->extent, {}});
    }
  }

  void Now(core::Input input) {
    world_.After(0, [this, input = std::move(input)] { Step(input); });
  }

  void Deliver(const core::SessionAction& action) {
    const SessionId session = std::visit(
        [](const auto& a) -> SessionId {
          if constexpr (std::is_same_v<std::decay_t<decltype(a)>,
                                       core::JobLimitSet>) {
            return SessionId();
          } else {
            return a.session;
          }
        },
        action);
    if (!session.ok()) return;
    world_.After(options_.costs.message, [this, session, action] {
      clients_[session.value() - 1]->Take(action);
    });
  }

  void ScheduleTick() {
    const absl::Time deadline = core_->next_deadline();
    if (deadline == absl::InfiniteFuture()) return;
    const double at = absl::ToDoubleSeconds(deadline - absl::UnixEpoch());
    const uint64_t number = ++tick_;
    // A little later: virtual time is a double, the core's an integer.
    const double later = std::max(at + 1e-9, std::nextafter(at, HUGE_VAL));
    world_.At(later, [this, number] {
      if (number == tick_) Step(core::Tick{});
    });
  }

  void Sample() {
    sim::Sample sample;
    sample.time = world_.now();
    for (size_t i = 0; i < jobs_.size(); ++i) {
      sample.resident.push_back(
          clients_[i] == nullptr ? Bytes() : clients_[i]->resident());
    }
    result_.samples.push_back(std::move(sample));
    world_.After(options_.sample_every, [this] { Sample(); });
  }

  const std::vector<SimJob>& jobs_;
  const SimOptions& options_;
  World world_;
  Machine machine_;
  std::unique_ptr<core::Core> core_;
  std::unique_ptr<core::VictimPolicy> planning_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  uint64_t tick_ = 0;
  size_t ops_done_ = 0;
  double progressed_ = 0;  // When something went on last.
  double counted_from_ = 0;
  uint64_t events_since_ = 0;
  SimResult result_;
};

}  // namespace

absl::StatusOr<SimResult> Simulate(const std::vector<SimJob>& jobs,
                                   const SimOptions& options) {
  Simulator simulator(jobs, options);
  if (absl::Status status = simulator.Start(); !status.ok()) return status;
  return simulator.Run();
}

}  // namespace mets::sim
