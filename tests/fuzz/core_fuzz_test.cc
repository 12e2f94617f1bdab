// Model fuzzing of the core: random programs of operations on fake processes
// that obey, skip, fail, die, reconnect, fall silent and send garbage. After
// each Step the core checks its invariants, and the cluster that no chunk has
// two holders, that bytes never cross domains, that every request is answered
// once and that every restored buffer finds its bytes.
//
// METS_FUZZ_OPS says how many operations run in all (90,000; ten million take
// some minutes), METS_FUZZ_SEED from which seed on (1): a program has 300
// operations, each has its own seed, and its policy follows from that. So
//   METS_FUZZ_OPS=2500000 METS_FUZZ_SEED=8335 core_fuzz_test
// is the second quarter of ten million. A program that fails is printed as a
// list of operations where METS_FUZZ_PRINT is set; once understood, it becomes
// an entry of ProgramsThatFailedOnceRun.
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/policy/registry.h"
#include "tests/daemon/core/fake_sessions.h"
#include "tests/fuzz/core_program.h"

namespace mets::core {
namespace {

constexpr int64_t kPoolMib = 24;
constexpr int64_t kSwapMib = 40;

std::string DeviceName(uint64_t device) {
  return "host" + std::to_string(device % 2);
}
std::string JobName(uint64_t job) { return "job" + std::to_string(job % 4); }

class Runner {
 public:
  explicit Runner(const std::string& policy)
      : cluster_(Config(kPoolMib), policy) {}

  void Run(const Program& program) {
    for (const Op& op : program) {
      std::visit([this](const auto& o) { Do(o); }, op);
      if (::testing::Test::HasFailure()) return;
    }
    Finish();
  }

 private:
  static CoreConfig Config(int64_t pool_mib) {
    CoreConfig config = FakeCluster::Config(MiB(pool_mib), MiB(kSwapMib));
    config.extent_size = MiB(8);
    config.events = true;
    config.max_buffers_per_session = 64;
    config.max_requests_per_session = 16;
    config.max_shares_per_domain = 3;
    config.idle_release = absl::Seconds(2);
    config.max_wait = absl::Seconds(3);
    config.order_timeout = absl::Seconds(1);
    // So that lower classes' moves are often held back.
    config.devices[0].bus_bytes_per_second = 1e9;
    config.devices.push_back(config.devices[0]);
    config.devices[1].id = DeviceId(2);
    config.devices[1].name = DeviceName(1);
    config.interference_bound = 1e-6;
    return config;
  }

  FakeSession* Pick(uint64_t s) {
    if (cluster_.sessions().empty()) return nullptr;
    auto it = cluster_.sessions().begin();
    std::advance(it, s % cluster_.sessions().size());
    return it->second.get();
  }
  FakeSession* PickAlive(uint64_t s) {
    FakeSession* session = Pick(s);
    return session != nullptr && session->alive ? session : nullptr;
  }
  BufferId PickBuffer(const FakeSession& session, uint64_t b) {
    if (session.buffers.empty()) return BufferId();
    auto it = session.buffers.begin();
    std::advance(it, b % session.buffers.size());
    return it->first;
  }

  void Do(const OpenOp& op) {
    size_t alive = 0;
    for (const auto& [id, s] : cluster_.sessions()) alive += s->alive;
    if (alive >= 8) return;
    cluster_.Open(JobName(op.job),
                  {1 + op.domain % 2, MiB(op.limit_mib), MiB(op.guarantee_mib),
                   op.priority, op.gated, DeviceName(op.device)});
  }
  void Do(const AllocOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected || s->buffers.size() > 20) return;
    cluster_.Alloc(*s, KiB(op.kib), absl::Milliseconds(op.wait_ms),
                   op.overdraft || op.kib == 0, false, op.s % 3,
                   op.fewest_chunks);
  }
  void Do(const TouchOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    cluster_.Touch(*s, PickBuffer(*s, op.b), op.write);
  }
  void Do(const FreeOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    cluster_.Free(*s, PickBuffer(*s, op.b), op.cache);
  }
  void Do(const PinOp& op) {
    if (FakeSession* s = PickAlive(op.s)) {
      cluster_.Pin(*s, PickBuffer(*s, op.b), op.pinned);
    }
  }
  void Do(const ReportOp& op) {
    if (FakeSession* s = PickAlive(op.s)) cluster_.Report(*s);
  }
  void Do(const OverdraftBackOp& op) {
    if (FakeSession* s = PickAlive(op.s)) cluster_.GiveOverdraftBack(*s);
  }
  void Do(const CancelOp& op) {
    if (FakeSession* s = PickAlive(op.s)) {
      cluster_.Send(*s, Cancel{s->id, RequestId(op.request)});
    }
  }
  void Do(const KillOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr) return;
    if (restarted_.count(s->id) > 0 && !s->connected) {
      // It has not come back from the restart: only its record ends.
      s->alive = false;
      s->buffers.clear();
      s->shares.clear();
      cluster_.Step(ExpectedSessionGone{s->id});
      return;
    }
    cluster_.Kill(*s);
  }
  void Do(const LoseOp& op) {
    if (FakeSession* s = PickAlive(op.s)) cluster_.Lose(*s);
  }
  void Do(const ResumeOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s != nullptr && restarted_.count(s->id) == 0) cluster_.Resume(*s);
  }
  void Do(const BehaveOp& op) {
    FakeSession* s = Pick(op.s);
    if (s == nullptr) return;
    s->silent = op.how & 1;
    s->skips = op.how & 2;
    s->fails = op.how & 4;
    s->keeps = op.how & 8;
    s->computes = op.how & 16;
    s->planless = op.how & 32;
  }
  void Do(const NeedOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    const auto part = [](int percent) {
      return Bytes(MiB(kPoolMib).count() * percent / 100);
    };
    cluster_.Send(*s,
                  StepNeed{s->id, s->device, part(op.peak), part(op.persistent),
                           absl::Milliseconds(op.step_ms)});
  }
  void Do(const WantTurnOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    const OrderId order(s->gate.order.value() - op.old);
    if (op.old == 0) s->told_waits = order;
    cluster_.Send(*s, TurnWanted{s->id, s->device, order});
  }
  void Do(const WaitAtGateOp& op) {
    if (FakeSession* s = PickAlive(op.s)) cluster_.WaitAtGate(*s);
  }
  void Do(const EndTurnOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    const OrderId order(s->gate.order.value() - op.old);
    const absl::Duration computed = absl::Milliseconds(op.computed_ms);
    if (op.computed_ms % 2 == 0) cluster_.Lend(*s);
    cluster_.Send(
        *s, TurnEnded{s->id, s->device, order, computed, true, computed / 2});
  }
  void Do(const StepOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    StepSeen seen;
    seen.session = s->id;
    seen.part.signature = 1 + op.kib;
    seen.part.duration = absl::Milliseconds(op.buffers);
    seen.part.buffers.assign(op.buffers, {KiB(op.kib), true});
    seen.part.ops.resize(op.buffers);
    for (uint32_t i = 0; i < seen.part.ops.size(); ++i) {
      seen.part.ops[i].start = absl::Milliseconds(i);
      seen.part.ops[i].accesses = {{i, steps::AccessKind::kWrite}};
    }
    StepProgress progress;
    progress.session = s->id;
    progress.signature = seen.part.signature;
    progress.duration = seen.part.duration;
    cluster_.Send(*s, seen);
    cluster_.Send(*s, progress);
    uint32_t logical = 0;
    for (auto& [id, buffer] : s->buffers) {
      buffer.logical = ++logical % (op.buffers + 1);
      s->changed.insert(id);
    }
    cluster_.Report(*s);
  }
  void Do(const PlanOp& op) {
    if (cluster_.plan_tasks.empty()) return;
    const steps::StepProgram& program = *cluster_.plan_tasks.front().program;
    if (op.absent == 0) {
      cluster_.AnswerPlan(absl::ResourceExhaustedError("it cannot be"));
      return;
    }
    steps::StepPlan plan;
    plan.signature = program.signature;
    for (uint32_t b = 0; b < program.buffers.size() && b < 64; ++b) {
      if ((op.absent >> b & 1) == 0) continue;
      steps::Absence absence;
      absence.buffer = absence.evict_after = absence.restore_at = absence.use =
          b;
      plan.absences.push_back(absence);
    }
    cluster_.AnswerPlan(std::move(plan));
  }
  // To any slot of the plan: which one is the client's business.
  void Do(const PlanMoveOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    if (!op.leaves) {
      cluster_.RestoreByPlan(*s, PickBuffer(*s, op.b));
    } else if (s->plan.has_value()) {
      const auto& places = s->plan->places;
      cluster_.EvictByPlan(*s, PickBuffer(*s, op.b),
                           places[op.b / 4 % places.size()].buffer);
    }
  }
  void Do(const ShareOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr || !s->connected) return;
    const std::string name = "share" + std::to_string(op.name);
    switch (op.deed) {
      case ShareDeed::kPublish:
        return cluster_.Publish(*s, PickBuffer(*s, op.b), name);
      case ShareDeed::kAttach:
        return cluster_.AttachShare(*s, name);
      case ShareDeed::kDetach:
        return cluster_.DetachShare(*s, name);
    }
  }
  void Do(const GarbageOp& op);
  void Do(const LimitOp& op) {
    cluster_.Step(SetJobLimit{JobName(op.job), MiB(op.mib), 1});
  }
  void Do(const CommandOp& op) {
    const std::string job = JobName(op.job);
    const bool on = (op.what & 4) == 0;
    switch (op.what & 3) {
      case 0:
        return cluster_.Step(DrainDevice{DeviceName(op.job), on, 1});
      case 1:
        return cluster_.Step(PauseJob{job, on, 2});
      case 2:
        return cluster_.Step(EvictJob{job, 3});
      default:
        return cluster_.Step(KillJob{job, absl::Seconds(1), 4});
    }
  }
  void Do(const FailCreationsOp& op) { cluster_.failing_creations = op.count; }
  void Do(const DeliverOp& op) {
    FakeSession* s = Pick(op.s);
    for (int i = 0; s != nullptr && i < op.count; ++i) {
      cluster_.DeliverToSession(*s);
      cluster_.DeliverToCore(*s);
      if (i % 2 == 1) cluster_.DeliverMemory();
    }
  }
  void Do(const PumpOp&) { cluster_.Pump(); }
  void Do(const AdvanceOp& op) { cluster_.Advance(absl::Milliseconds(op.ms)); }
  void Do(const RestartOp& op) {
    // A refused process is no session of the new daemon.
    for (auto& [id, s] : cluster_.sessions()) {
      if (s->refused) cluster_.Kill(*s);
    }
    cluster_.Pump();
    cluster_.RestartCore(Config(op.pool_mib));
    restarted_.clear();
    for (auto& [id, s] : cluster_.sessions()) restarted_.insert(id);
  }
  void Do(const ReturnOp& op) {
    FakeSession* s = PickAlive(op.s);
    if (s == nullptr) return;
    if (restarted_.erase(s->id) > 0) {
      cluster_.Return(*s);
    } else {
      cluster_.Resume(*s);
    }
  }

  void Do(const SucceedOp&) { cluster_.SucceedCore(); }

  // Everybody ends; everything is back.
  void Finish() {
    for (auto& [id, s] : cluster_.sessions()) {
      s->silent = s->skips = s->fails = s->keeps = s->computes = s->planless =
          false;
    }
    cluster_.failing_creations = 0;
    cluster_.Advance(absl::Seconds(10));
    for (size_t i = 0; i < cluster_.sessions().size(); ++i) Do(KillOp{i});
    cluster_.Advance(absl::Seconds(70));
    for (const DeviceStatus& device : cluster_.core().GetStatus().devices) {
      EXPECT_EQ(device.free, device.pool);
      EXPECT_EQ(device.swap_used, Bytes());
      EXPECT_EQ(device.swap_clean, Bytes());
    }
    EXPECT_TRUE(cluster_.core().GetStatus().jobs.empty());
  }

  FakeCluster cluster_;
  std::set<SessionId> restarted_;
};

// Messages that no good client sends.
void Runner::Do(const GarbageOp& op) {
  FakeSession* s = PickAlive(op.s);
  if (s == nullptr) return;
  BufferReport report;
  report.id = BufferId(op.value % 40);
  report.size = KiB(64) * static_cast<int64_t>(op.value % 300);
  report.state = BufferState(op.value % 2);
  report.clean = op.value % 3 == 0;
  // Not one of its plan: then its own bytes would be lost.
  if (s->plans == 0) report.slot = SlotId(op.value % 50);
  BufferChanges changes;
  changes.session = s->id;
  changes.cached = Bytes(static_cast<int64_t>(op.value) - 1000);
  changes.pinned = Bytes(static_cast<int64_t>(op.value << 20));
  Release release;
  release.session = s->id;
  Snapshot snapshot;
  snapshot.session = s->id;
  switch (op.kind) {
    case 0:
      // Not one that may be its own by the time the message arrives.
      release.chunks = {ChunkId(1000000 + op.value)};
      cluster_.Send(*s, release);
      break;
    case 1:
      release.orphan = Bytes(static_cast<int64_t>(op.value));
      release.overdraft = true;
      cluster_.Send(*s, release);
      break;
    case 2:
      // Lies about buffers cannot hurt others; its own bytes it may lose.
      report.id = BufferId(1000 + op.value % 20);
      changes.buffers = {report};
      cluster_.Send(*s, changes);
      break;
    case 3:
      snapshot.chunks = {ChunkId(1000000 + op.value)};
      snapshot.last = op.value % 2 == 0;
      cluster_.Send(*s, snapshot);
      break;
    case 4:
      cluster_.Send(*s, OrderDone{s->id, OrderId(1000000 + op.value), {}, ""});
      cluster_.Send(*s, Forgotten{s->id, OrderId(1000000 + op.value), {}});
      break;
    case 5:
      cluster_.Send(*s, PublishShare{s->id,
                                     RequestId(),
                                     "",
                                     "stolen",
                                     "",
                                     Bytes(1),
                                     {ChunkId(1000000 + op.value)}});
      break;
    case 6:
      // Any share of this epoch, but none that it has.
      if (s->shares.empty() && s->publishing.empty() && s->attaching.empty()) {
        cluster_.Send(*s,
                      DetachShare{s->id, "", ShareId(op.value % 20), Epoch(1)});
      }
      break;
    case 7:
      snapshot.shares = {{ShareId(op.value % 20), Epoch(op.value % 3),
                          KiB(64) * static_cast<int64_t>(op.value)}};
      snapshot.last = true;
      cluster_.Send(*s, snapshot);
      break;
    default:
      cluster_.Send(*s, AttachDevice{s->id, "nothing", true});
      cluster_.Step(SessionEnded{SessionId(100000 + op.value)});
      break;
  }
}

// --- generation --------------------------------------------------------------

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Policy() {
    const std::vector<std::string> names = policy::PolicyNames();
    return names[Below(names.size())];
  }

  Program Make(int length) {
    Program program = {Open(), Open(), Open()};
    while (static_cast<int>(program.size()) < length) {
      program.push_back(Next());
    }
    return program;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }

  Op Open() {
    return OpenOp{Below(4),
                  Below(2),
                  Chance(25) ? 4 + static_cast<int64_t>(Below(16)) : 0,
                  Chance(25) ? static_cast<int64_t>(Below(10)) : 0,
                  static_cast<int>(Below(3)),
                  Chance(40),
                  Below(2)};
  }
  Op Alloc() {
    static constexpr int64_t kSizes[] = {64,   100,  512,  1024, 2048,
                                         3000, 4096, 6000, 8192, 16384};
    static constexpr int kWaits[] = {0, 50, 1000, 60000};
    const bool token_only = Chance(5);
    return AllocOp{Below(16), token_only ? 0 : kSizes[Below(10)],
                   kWaits[Below(4)], Chance(10), Chance(15)};
  }

  Op Turn(uint64_t s) {
    static constexpr int kParts[] = {-5, 0, 5, 30, 60, 95, 300};
    const uint64_t dice = Below(10);
    const uint64_t old = Chance(80) ? 0 : Below(5);
    if (dice < 2) {
      return NeedOp{s, kParts[Below(7)], kParts[Below(7)],
                    static_cast<int>(Below(400)) - 10};
    }
    if (dice < 4) return WantTurnOp{s, old};
    if (dice < 8) return WaitAtGateOp{s};
    return EndTurnOp{s, old, static_cast<int64_t>(Below(1000)) - 10};
  }

  Op Plan(uint64_t s, uint64_t b) {
    const uint64_t dice = Below(20);
    if (dice < 3) {
      return StepOp{s, 2 + static_cast<int>(Below(12)),
                    2048 << static_cast<int64_t>(Below(4))};
    }
    if (dice < 7) return PlanOp{Chance(10) ? 0 : 1 + Below((1 << 12) - 1)};
    return PlanMoveOp{s, b, dice < 15};
  }

  Op Share(uint64_t s, uint64_t b) {
    static constexpr ShareDeed kDeeds[] = {
        ShareDeed::kPublish, ShareDeed::kAttach, ShareDeed::kAttach,
        ShareDeed::kDetach};
    return ShareOp{s, b, kDeeds[Below(4)], Below(4)};
  }

  Op Next() {
    const uint64_t s = Below(16), b = Below(64);
    if (Chance(6)) return Share(s, b);
    if (Chance(12)) return Turn(s);
    if (Chance(30)) return Plan(s, b);
    const uint64_t dice = Below(200);
    if (dice < 40) return Alloc();
    if (dice < 75) return TouchOp{s, b, Chance(50)};
    if (dice < 88) return FreeOp{s, b, Chance(60)};
    if (dice < 98) return PinOp{s, b, Chance(40)};
    if (dice < 118) return ReportOp{s};
    if (dice < 123) return OverdraftBackOp{s};
    if (dice < 126) return CancelOp{s, Below(40)};
    if (dice < 128) return KillOp{s};
    if (dice < 131) return LoseOp{s};
    if (dice < 136) return ResumeOp{s};
    if (dice < 140) {
      return BehaveOp{s, Chance(60) ? 0 : static_cast<int>(Below(64))};
    }
    if (dice < 141)
      return GarbageOp{s, static_cast<int>(Below(9)), Below(1000)};
    if (dice < 143) {
      return LimitOp{Below(4),
                     Chance(50) ? 0 : 1 + static_cast<int64_t>(Below(20))};
    }
    if (dice < 144) return FailCreationsOp{static_cast<int>(Below(4))};
    if (dice < 146) return CommandOp{Below(4), static_cast<int>(Below(8))};
    if (dice < 164) return DeliverOp{s, 1 + static_cast<int>(Below(4))};
    if (dice < 180) return PumpOp{};
    if (dice < 192) {
      return AdvanceOp{Chance(10) ? 6000 : static_cast<int>(Below(100))};
    }
    if (dice < 195) return Open();
    if (dice < 196) {
      return RestartOp{Chance(80) ? kPoolMib : kPoolMib / 2};
    }
    return dice < 197 ? Op(SucceedOp{}) : ReturnOp{s};
  }

  std::mt19937_64 random_;
};

// --- tests -------------------------------------------------------------------

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

constexpr uint64_t kOpsOfAProgram = 300;

struct Regression {
  std::string policy;
  Program program;
};

TEST(CoreFuzzTest, RandomProgramsKeepEveryInvariant) {
  const uint64_t ops = FromEnvironment("METS_FUZZ_OPS", 90'000);
  uint64_t seed = FromEnvironment("METS_FUZZ_SEED", 1);
  uint64_t done = 0;
  for (; done < ops; done += kOpsOfAProgram, ++seed) {
    Generator generator(seed);
    const std::string policy = generator.Policy();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", policy ", policy));
    const Program program = generator.Make(kOpsOfAProgram);
    Runner(policy).Run(program);
    if (HasFailure()) {
      if (std::getenv("METS_FUZZ_PRINT") != nullptr) {
        ADD_FAILURE() << Text(program);
      }
      return;
    }
  }
  std::cout << "operations: " << done << std::endl;
}

TEST(CoreFuzzTest, ProgramsThatFailedOnceRun) {
  const std::vector<Regression> regressions = {};
  for (const Regression& regression : regressions) {
    SCOPED_TRACE(absl::StrCat("policy ", regression.policy, "\n",
                              Text(regression.program)));
    Runner(regression.policy).Run(regression.program);
  }
}

}  // namespace
}  // namespace mets::core
