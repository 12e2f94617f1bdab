// How long decisions take.
#include <benchmark/benchmark.h>

#include <memory>

#include "daemon/core/core.h"
#include "daemon/policy/lru_policy.h"

namespace mets::core {
namespace {

constexpr absl::Time kNow = absl::UnixEpoch();
const SessionId kSession(1);

// A core with one attached session; memory is created at once.
class Bench {
 public:
  Bench() : core_(Config(), std::make_unique<policy::LruPolicy>()) {
    SessionOpened opened;
    opened.session = kSession;
    opened.domain = DomainId(1);
    opened.job = "bench";
    Step(opened);
    Step(AttachDevice{kSession, "host0", true});
  }

  // Chunks of the grant among the consequences, if there is one.
  std::vector<ChunkId> Step(const Input& input) {
    std::vector<ChunkId> granted;
    for (const Action& action : core_.Step(kNow, input)) {
      if (const auto* memory = std::get_if<MemoryAction>(&action)) {
        const auto more =
            Step(ChunkCreated{std::get<CreateChunk>(*memory).chunk, {}});
        granted.insert(granted.end(), more.begin(), more.end());
        continue;
      }
      const auto& session = std::get<SessionAction>(action);
      if (const auto* grant = std::get_if<Grant>(&session)) {
        for (const ChunkRef& chunk : grant->chunks) {
          granted.push_back(chunk.id);
        }
      }
    }
    return granted;
  }

  std::vector<ChunkId> Get(Bytes size) {
    return Step(Acquire{kSession,
                        RequestId(++request_),
                        "host0",
                        {size},
                        absl::Seconds(60),
                        false});
  }

 private:
  static CoreConfig Config() {
    CoreConfig config;
    config.devices.push_back({DeviceId(1),
                              "host0",
                              "host",
                              GiB(4),
                              {KiB(64), KiB(256), MiB(1), MiB(4), MiB(16)}});
    config.swap_limit = GiB(4);
    config.extent_size = GiB(1);
    return config;
  }

  Core core_;
  uint64_t request_ = 0;
};

void AcquireFromFreeChunks(benchmark::State& state) {
  Bench bench;
  Release release;
  release.session = kSession;
  release.device = "host0";
  for (int i = 0; i < state.range(0); ++i) {
    for (ChunkId chunk : bench.Get(MiB(4))) release.chunks.push_back(chunk);
  }
  bench.Step(release);
  for (auto _ : state) {
    release.chunks = bench.Get(MiB(12));
    bench.Step(release);
  }
}
BENCHMARK(AcquireFromFreeChunks)->Arg(8)->Arg(500);

void ReportHundredBuffers(benchmark::State& state) {
  Bench bench;
  BufferChanges changes;
  changes.session = kSession;
  changes.device = "host0";
  for (int i = 1; i <= 5000; ++i) {
    BufferReport report;
    report.id = BufferId(i);
    report.size = MiB(1);
    changes.buffers.push_back(report);
  }
  bench.Step(changes);
  changes.buffers.resize(100);
  for (auto _ : state) bench.Step(changes);
}
BENCHMARK(ReportHundredBuffers);

}  // namespace
}  // namespace mets::core
