#include "tests/benchmarks/compare/replay.h"

#include <benchmark/benchmark.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace mets::compare {
namespace {

constexpr int kWarmUps = 3;
constexpr int kThreads = 2;  // Or one.

struct Call {
  bool allocates;
  uint32_t slot;  // Its address is kept there.
  size_t bytes;
};

struct Trace {
  std::string name;
  std::vector<Call> calls;
  size_t slots = 0;
};

[[noreturn]] void Die(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(2);
}

// Lines "+ SLOT BYTES" and "- SLOT BYTES"; at the end all has been freed.
Trace Read(const std::string& path) {
  Trace trace;
  const size_t slash = path.rfind('/') + 1;
  trace.name = path.substr(slash, path.find('.', slash) - slash);
  std::ifstream file(path);
  char sign;
  Call call;
  while (file >> sign >> call.slot >> call.bytes) {
    call.allocates = sign == '+';
    trace.slots = std::max<size_t>(trace.slots, call.slot + 1);
    trace.calls.push_back(call);
  }
  if (trace.calls.empty()) Die("no calls in " + path);
  return trace;
}

// Addresses of blocks that live; ends the program when two overlap.
class Overlaps {
 public:
  void Add(void* address, size_t bytes) {
    char* begin = static_cast<char*>(address);
    const auto next = live_.lower_bound(begin);
    if (reinterpret_cast<uintptr_t>(begin) % 64 != 0 ||
        (next != live_.end() && begin + bytes > next->first) ||
        (next != live_.begin() && std::prev(next)->second > begin)) {
      Die("a block overlaps another one, or is not aligned");
    }
    live_[begin] = begin + bytes;
  }
  void Remove(void* address) { live_.erase(static_cast<char*>(address)); }
  void FreeAll(Allocator& allocator) {
    for (const auto& [begin, end] : live_) allocator.Free(begin, end - begin);
  }

 private:
  std::map<char*, char*> live_;
};

struct Peaks {
  bool fits = true;
  int64_t live_bytes = 0;
  size_t live_at = 0;  // So much lives behind the call of this number.
  int64_t held_bytes = 0;
};

// Replays once, without a clock: checks addresses, looks what is held.
Peaks Look(const Trace& trace, Allocator& allocator) {
  std::vector<void*> addresses(trace.slots);
  Overlaps overlaps;
  Peaks peaks;
  int64_t live = 0;
  for (const Call& call : trace.calls) {
    void*& address = addresses[call.slot];
    if (!call.allocates) {
      overlaps.Remove(address);
      allocator.Free(address, call.bytes);
      live -= call.bytes;
      continue;
    }
    address = allocator.Allocate(call.bytes);
    if (address == nullptr) {
      peaks.fits = false;
      overlaps.FreeAll(allocator);
      return peaks;
    }
    overlaps.Add(address, call.bytes);
    live += call.bytes;
    if (live > peaks.live_bytes) {
      peaks.live_bytes = live;
      peaks.live_at = &call - trace.calls.data() + 1;
    }
    peaks.held_bytes = std::max(peaks.held_bytes, allocator.held_bytes());
  }
  return peaks;
}

// Each thread replays the whole trace, on blocks of its own; at first without a
// clock, and meeting the others where most lives, so that the allocator has
// what all of them need.
void Time(benchmark::State& state, const Trace& trace, Allocator& allocator,
          const Peaks& peaks, pthread_barrier_t* all) {
  std::vector<void*> addresses(trace.slots);
  const auto replay = [&](const Call* begin, const Call* end) {
    for (const Call* call = begin; call < end; ++call) {
      if (call->allocates) {
        addresses[call->slot] = allocator.Allocate(call->bytes);
      } else {
        allocator.Free(addresses[call->slot], call->bytes);
      }
    }
  };
  const Call* begin = trace.calls.data();
  const Call* end = begin + trace.calls.size();
  for (int i = 0; i < kWarmUps; ++i) {
    replay(begin, begin + peaks.live_at);
    if (state.threads() > 1) pthread_barrier_wait(all);
    replay(begin + peaks.live_at, end);
  }
  for (auto _ : state) replay(begin, end);
  state.SetItemsProcessed(state.iterations() * trace.calls.size());
  const auto once = benchmark::Counter::kAvgThreads;
  state.counters["live_bytes"] = benchmark::Counter(peaks.live_bytes, once);
  state.counters["held_bytes"] = benchmark::Counter(peaks.held_bytes, once);
}

// Tells the first of `pools` in which the trace fits; 1 when it fits in none.
int Fit(const Trace& trace, Factory factory, char** pools, char** end) {
  for (; pools < end; ++pools) {
    const Peaks peaks = Look(trace, *factory(std::atoll(*pools)));
    if (!peaks.fits) continue;
    std::printf("%s %lld\n", *pools, static_cast<long long>(peaks.held_bytes));
    return 0;
  }
  return 1;
}

}  // namespace

int Main(int argc, char** argv, Factory factory) {
  benchmark::Initialize(&argc, argv);
  if (argc >= 4 && std::strcmp(argv[1], "--fits") == 0) {
    return Fit(Read(argv[argc - 1]), factory, argv + 2, argv + argc - 1);
  }
  if (argc != 2) Die("usage: compare_ALLOCATOR [--fits POOL...] FILE");
  const Trace trace = Read(argv[1]);
  const std::unique_ptr<Allocator> allocator = factory(0);
  const Peaks peaks = Look(trace, *allocator);
  if (!peaks.fits) Die("no room for " + trace.name);
  pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, kThreads);
  benchmark::RegisterBenchmark(trace.name.c_str(),
                               [&](benchmark::State& state) {
                                 Time(state, trace, *allocator, peaks, &all);
                               })
      ->ThreadRange(1, kThreads)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  pthread_barrier_destroy(&all);
  return 0;
}

}  // namespace mets::compare
