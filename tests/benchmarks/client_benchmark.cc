// What libmets' calls cost, against a real metsd.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/session.h"
#include "tests/client/metsd_process.h"

namespace mets::client {
namespace {

constexpr Bytes kSize = MiB(4);

// One daemon and one session for all benchmarks.
Device& SharedDevice() {
  static MetsdProcess metsd("256MiB", "64MiB");
  static std::unique_ptr<Session> session = [] {
    Settings settings;
    settings.run_dir = metsd.run_dir();
    settings.job = "benchmark";
    auto started = Session::Start(settings);
    METS_CHECK_OK(started);
    return *std::move(started);
  }();
  static Device* device = [] {
    auto opened = session->OpenDevice("", true);
    METS_CHECK_OK(opened);
    return *opened;
  }();
  return *device;
}

void* Allocate(Device& device, Bytes bytes) {
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = bytes.count();
  void* address = nullptr;
  METS_CHECK_OK(device.Alloc(options, &address));
  return address;
}

void BM_AllocateAndFreeFromCache(benchmark::State& state) {
  Device& device = SharedDevice();
  device.Free(Allocate(device, kSize));
  for (auto _ : state) device.Free(Allocate(device, kSize));
}
BENCHMARK(BM_AllocateAndFreeFromCache);

// Of so many sizes up to 128 KiB, in any order, while 1,000 others live.
void BM_AllocateAndFreeInSlabs(benchmark::State& state) {
  Device& device = SharedDevice();
  std::mt19937 random(1);
  const auto allocate = [&] {
    const int64_t size = 1 + random() % state.range(0);
    return Allocate(device, Bytes(size * (128 << 10) / state.range(0)));
  };
  std::vector<void*> live(1000);
  for (void*& address : live) address = allocate();
  for (auto _ : state) {
    void*& address = live[random() % live.size()];
    device.Free(address);
    address = allocate();
  }
  for (void* address : live) device.Free(address);
}
BENCHMARK(BM_AllocateAndFreeInSlabs)->Arg(32)->Arg(2048);

void BM_OpOnResidentBuffers(benchmark::State& state) {
  Device& device = SharedDevice();
  std::vector<mets_access> accesses;
  for (int64_t i = 0; i < state.range(0); ++i) {
    accesses.push_back({Allocate(device, kSize), 0, METS_WRITE});
  }
  for (auto _ : state) {
    Op* op = nullptr;
    METS_CHECK_OK(device.BeginOp(accesses.data(), accesses.size(), 0, &op));
    device.EndOp(op);
  }
  for (const mets_access& access : accesses) {
    device.Free(const_cast<void*>(access.address));
  }
}
BENCHMARK(BM_OpOnResidentBuffers)->Arg(1)->Arg(4);

// A request that free chunks can serve: to the daemon and back, and the mapping
// of its memory. Counter "median": in seconds.
void BM_AcquireFreeChunks(benchmark::State& state) {
  Device& device = SharedDevice();
  std::vector<double> seconds;
  for (auto _ : state) {
    const absl::Time start = absl::Now();
    void* address = Allocate(device, kSize);
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
    state.SetIterationTime(seconds.back());
    device.Free(address);
    device.Trim(GiB(1), 0);
  }
  const auto middle = seconds.begin() + seconds.size() / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  state.counters["median"] = *middle;
}
BENCHMARK(BM_AcquireFreeChunks)->Unit(benchmark::kMicrosecond)->UseManualTime();

}  // namespace
}  // namespace mets::client
