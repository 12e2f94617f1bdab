// How long one decision takes: the victims for one request, with all sessions
// contending, time advancing between requests and caches cold: before each, so
// much other memory is written that nothing of the core is left in any cache.
// Then another, small core decides, so that what is measured is what the data
// costs, whose amount is under test, not how the program comes from memory.
// The names with _idle are without that: the first decision after a pause.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "daemon/core/core.h"
#include "daemon/policy/registry.h"

namespace mets::core {
namespace {

constexpr Bytes kSmallest = KiB(64);
constexpr Bytes kLargest = MiB(16);

// Sessions that hold the whole pool in buffers of 64 KiB to 16 MiB (equally
// many in each size class), and ask for buffers of such sizes. Victims come
// back at once; half of them were only read meanwhile, and leave without a copy
// the next time.
class Contention {
 public:
  Contention(int sessions, int buffers, const std::string& policy) {
    std::vector<std::vector<BufferReport>> reports(sessions);
    CoreConfig config;
    config.devices.push_back(
        {DeviceId(1), "gpu0", "host", Bytes(), {KiB(64), MiB(1), kLargest}});
    for (auto& of_session : reports) {
      holdings_.push_back(Bytes());
      for (int b = 1; b <= buffers; ++b) of_session.push_back(Report(b));
      for (const BufferReport& r : of_session) holdings_.back() += r.size;
      holdings_.back() = holdings_.back().RoundUpTo(kLargest);
      config.devices[0].pool += holdings_.back();
    }
    config.swap_limit = config.devices[0].pool * 2;
    config.events = true;  // As metsd.
    config.extent_size = config.swap_limit;
    core_ = std::make_unique<Core>(config, *policy::MakePolicy(policy));
    for (int s = 0; s < sessions; ++s) Open(s, std::move(reports[s]));
    // The first victims wait for swap space to be created.
    for (int i = 0; i < 3; ++i) {
      GoOn();
      Decide();
    }
  }

  // Time passes, and a session uses a hundred of its buffers.
  void GoOn() {
    now_ += absl::Milliseconds(20 + Below(20));
    const int s = Below(static_cast<int>(holdings_.size()));
    BufferChanges changes;
    changes.session = SessionId(s + 1);
    changes.device = "gpu0";
    for (int i = 0; i < 100; ++i) {
      const int b = Below(buffers_);
      changes.buffers.push_back(Used(s, b));
    }
    Step(changes);
  }

  // One request; the seconds that the core took for it.
  double Decide() {
    const SessionId session(1 + Below(static_cast<int>(holdings_.size())));
    const Acquire acquire{session,  RequestId(++request_), "gpu0",
                          {Size()}, absl::Seconds(60),     false};
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Action> actions = core_->Step(now_, acquire);
    const std::vector<Event> events = core_->TakeEvents();
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    // Nothing is given back, or there would be no need to take anything.
    Step(Cancel{session, RequestId(request_)});
    Perform(actions);
    return took.count();
  }

  int64_t victims() const { return victims_; }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }

  Bytes Size() {
    const double octaves = std::log2(static_cast<double>(kLargest / kSmallest));
    const double part = std::exp2(octaves * Below(1 << 20) / (1 << 20));
    return Bytes(static_cast<int64_t>(part * kSmallest.count()));
  }

  BufferReport Report(int id) {
    BufferReport report;
    report.id = BufferId(id);
    report.size = Size();
    report.idle = absl::Microseconds(Below(10'000'000));
    return report;
  }

  void Open(int s, std::vector<BufferReport> reports) {
    SessionOpened opened;
    opened.session = SessionId(s + 1);
    opened.domain = DomainId(1);
    opened.job = "job" + std::to_string(s);
    Step(opened);
    Step(AttachDevice{opened.session, "gpu0", true});
    Step(Acquire{opened.session,
                 RequestId(++request_),
                 "gpu0",
                 {holdings_[s]},
                 absl::Seconds(60),
                 false});
    BufferChanges changes;
    changes.session = opened.session;
    changes.device = "gpu0";
    for (const BufferReport& r : reports) sizes_.push_back(r.size);
    buffers_ = static_cast<int>(reports.size());
    changes.buffers = std::move(reports);
    Step(changes);
  }

  BufferReport Used(int s, int b) {
    BufferReport report;
    report.id = BufferId(b + 1);
    report.size = sizes_[static_cast<size_t>(s) * buffers_ + b];
    return report;
  }

  void Step(const Input& input) {
    Perform(core_->Step(now_, input));
    core_->TakeEvents();
  }

  void Perform(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* memory = std::get_if<MemoryAction>(&action)) {
        if (const auto* chunk = std::get_if<CreateChunk>(memory)) {
          Step(ChunkCreated{chunk->chunk, absl::OkStatus()});
        } else if (const auto* extent = std::get_if<CreateExtent>(memory)) {
          Step(ExtentCreated{extent->extent, absl::OkStatus()});
        }
        continue;
      }
      const auto& session = std::get<SessionAction>(action);
      if (const auto* order = std::get_if<EvictOrder>(&session)) Obey(*order);
    }
  }

  void Obey(const EvictOrder& order) {
    OrderDone done{order.session, order.order, {}, ""};
    BufferChanges back;
    back.session = order.session;
    back.device = "gpu0";
    for (const EvictOrder::Candidate& candidate : order.candidates) {
      ++victims_;
      done.results.push_back(
          {candidate.buffer, Outcome::kDone, false, candidate.slot.id});
      back.buffers.push_back(
          Used(static_cast<int>(order.session.value()) - 1,
               static_cast<int>(candidate.buffer.value()) - 1));
      back.buffers.back().clean = Below(2) == 0;
      back.buffers.back().slot = candidate.slot.id;
    }
    Step(done);
    Step(back);
  }

  std::mt19937_64 random_{1};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::unique_ptr<Core> core_;
  std::vector<Bytes> holdings_, sizes_;
  int buffers_ = 0;
  uint64_t request_ = 0;
  int64_t victims_ = 0;
};

class OtherMemory {
 public:
  void Write() {
    for (size_t i = 0; i < words_.size(); i += 8) ++words_[i];
    benchmark::ClobberMemory();
  }

 private:
  std::vector<int64_t> words_ = std::vector<int64_t>(MiB(64) / Bytes(8));
};

// METS_BENCH_DECISIONS: how many of each size are measured.
int Decisions() {
  const char* text = std::getenv("METS_BENCH_DECISIONS");
  return text == nullptr ? 50 : std::max(1, std::atoi(text));
}

// METS_BENCH_TIMES: a file to which each size adds a line, its name and the
// seconds of its decisions. They are the same decisions each time.
void SaveTimes(const std::string& name, const benchmark::State& state,
               const std::vector<double>& times) {
  const char* path = std::getenv("METS_BENCH_TIMES");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app);
  file << name << "," << state.range(0) << "," << state.range(1);
  for (double time : times) file << "," << time;
  file << "\n";
}

// Arguments: sessions, buffers of each.
void VictimsForOneRequest(benchmark::State& state, const std::string& policy,
                          bool idle) {
  Contention contention(static_cast<int>(state.range(0)),
                        static_cast<int>(state.range(1)), policy);
  Contention small(2, 200, policy);
  OtherMemory other;
  const int64_t before = contention.victims();
  std::vector<double> times;
  for (auto _ : state) {
    contention.GoOn();
    small.GoOn();
    other.Write();
    if (!idle) small.Decide();
    times.push_back(contention.Decide());
    state.SetIterationTime(times.back());
  }
  SaveTimes(idle ? policy + "_idle" : policy, state, times);
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return 1e6 * times[std::min(times.size() - 1,
                                static_cast<size_t>(part * times.size()))];
  };
  state.counters["p50_us"] = at(0.50);
  state.counters["p99_us"] = at(0.99);
  state.counters["victims"] =
      static_cast<double>(contention.victims() - before) / times.size();
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Iterations(Decisions())->UseManualTime();
  benchmark->ArgNames({"sessions", "buffers"});
  benchmark->Unit(benchmark::kMicrosecond);
  benchmark->ArgsProduct({{1, 64}, {100, 1000, 10000}});
}
// What one read costs that finds nothing in any cache: the measure of the
// times above on a machine.
void OneReadFromMemory(benchmark::State& state) {
  constexpr size_t kLine = 64 / sizeof(uint32_t);
  std::vector<uint32_t> order(MiB(256) / Bytes(64));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<uint32_t> lines(order.size() * kLine);
  for (size_t i = 0; i < order.size(); ++i) {
    lines[order[i] * kLine] = order[(i + 1) % order.size()];
  }
  uint32_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(at = lines[at * kLine]);
}
BENCHMARK(OneReadFromMemory);

BENCHMARK_CAPTURE(VictimsForOneRequest, lru, "lru", false)->Apply(Sizes);
BENCHMARK_CAPTURE(VictimsForOneRequest, next_use, "next_use", false)
    ->Apply(Sizes);
BENCHMARK_CAPTURE(VictimsForOneRequest, lru_idle, "lru", true)->Apply(Sizes);

}  // namespace
}  // namespace mets::core
