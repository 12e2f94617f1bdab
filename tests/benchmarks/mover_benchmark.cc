// How fast a host device's copies are, beside a plain memcpy of the same size.
//
// CopyIn and CopyOut into chunks that this process has mapped before should
// reach 80 % of Memcpy's bandwidth, on first mapping 30 %.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/device/host/host_map_driver.h"
#include "common/device/host/host_pool_driver.h"

namespace mets {
namespace {

// A buffer of 64 MiB in chunks of the size under test, and its slot.
constexpr Bytes kBuffer = MiB(64);

struct Fixture {
  explicit Fixture(Bytes chunk_size, bool huge_pages = true)
      : pool(HostPoolOptions{GiB(1), "/proc/meminfo", huge_pages}),
        map(*HostMapDriver::Create(HostMapOptions())) {
    for (int64_t i = 0; i < kBuffer / chunk_size; ++i) {
      chunks.push_back(Import(chunk_size));
    }
    extent = *map->RegisterExtent(*pool.CreateExtent(kBuffer), kBuffer);
    slot = {{extent, Bytes(), kBuffer}};
    range = *map->ReserveRange(kBuffer);
  }

  ChunkHandle Import(Bytes size) {
    absl::StatusOr<UniqueFd> fd = pool.CreateChunk(size);
    METS_CHECK_OK(fd);
    absl::StatusOr<ChunkHandle> chunk = map->ImportChunk(*std::move(fd), size);
    METS_CHECK_OK(chunk);
    return *chunk;
  }
  void In() {
    METS_CHECK_OK(
        map->CopyIn(range, chunks, slot, kBuffer, StreamHandle::kHostOrder));
  }
  void Out() {
    METS_CHECK_OK(
        map->CopyOut(range, chunks, slot, kBuffer, StreamHandle::kHostOrder));
  }

  HostPoolDriver pool;
  std::unique_ptr<HostMapDriver> map;
  std::vector<ChunkHandle> chunks;
  ExtentHandle extent;
  std::vector<ExtentPiece> slot;
  char* range = nullptr;
};

void ReportBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * kBuffer.count());
}

// Between two populated memfd mappings, in pieces of the chunk size.
void Memcpy(benchmark::State& state) {
  const int64_t piece = state.range(0) << 20;
  HostPoolDriver pool(HostPoolOptions{GiB(1)});
  char* memory[2];
  for (char*& place : memory) {
    UniqueFd fd = *pool.CreateExtent(kBuffer);
    place = static_cast<char*>(mmap(nullptr, kBuffer.count(),
                                    PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_POPULATE, fd.get(), 0));
    METS_CHECK(place != MAP_FAILED);
    std::memset(place, 1, kBuffer.count());
  }
  for (auto _ : state) {
    for (int64_t at = 0; at < kBuffer.count(); at += piece) {
      std::memcpy(memory[0] + at, memory[1] + at, piece);
    }
    benchmark::ClobberMemory();
  }
  ReportBytes(state);
  for (char* place : memory) munmap(place, kBuffer.count());
}

// A whole restore: copy in, with the mapping, and the unmapping that comes
// before the next one.
void CopyInMappedBefore(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  f.In();
  for (auto _ : state) {
    METS_CHECK_OK(f.map->Unmap(f.range, f.chunks));
    f.In();
  }
  ReportBytes(state);
}

void CopyInFirstMapping(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  f.In();
  for (auto _ : state) {
    state.PauseTiming();
    METS_CHECK_OK(f.map->Unmap(f.range, f.chunks));
    std::vector<UniqueFd> fds;
    for (ChunkHandle& chunk : f.chunks) {
      f.map->ForgetChunk(chunk);
      UniqueFd fd = *f.pool.CreateChunk(MiB(state.range(0)));
      chunk = *f.map->ImportChunk(UniqueFd(dup(fd.get())), MiB(state.range(0)));
      METS_CHECK_OK(f.pool.ReleaseChunk(std::move(fd)));
    }
    state.ResumeTiming();
    f.In();
  }
  ReportBytes(state);
}

// A whole eviction and the return of access: block, copy out, allow.
void BlockedCopyOut(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  f.In();
  for (auto _ : state) {
    METS_CHECK_OK(f.map->BlockAccess(f.range, f.chunks));
    f.Out();
    METS_CHECK_OK(f.map->AllowAccess(f.range, f.chunks));
  }
  ReportBytes(state);
}

void UnblockedCopyOut(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  f.In();
  for (auto _ : state) {
    f.Out();
    state.PauseTiming();  // The next copy must not profit from this one.
    METS_CHECK_OK(f.map->BlockAccess(f.range, f.chunks));
    METS_CHECK_OK(f.map->AllowAccess(f.range, f.chunks));
    state.ResumeTiming();
  }
  ReportBytes(state);
}

void CopyOutFirstUseOfSlot(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  METS_CHECK_OK(f.map->Map(f.range, f.chunks));
  METS_CHECK_OK(f.map->BlockAccess(f.range, f.chunks));
  for (auto _ : state) {
    state.PauseTiming();
    f.map->ForgetExtent(f.extent);
    f.extent = *f.map->RegisterExtent(*f.pool.CreateExtent(kBuffer), kBuffer);
    f.slot[0].extent = f.extent;
    state.ResumeTiming();
    f.Out();
  }
  ReportBytes(state);
}

void MapAndUnmap(benchmark::State& state) {
  Fixture f(MiB(state.range(0)));
  for (auto _ : state) {
    METS_CHECK_OK(f.map->Map(f.range, f.chunks));
    METS_CHECK_OK(f.map->Unmap(f.range, f.chunks));
  }
  ReportBytes(state);
}

BENCHMARK(Memcpy)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(CopyInMappedBefore)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(CopyInFirstMapping)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(BlockedCopyOut)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(UnblockedCopyOut)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(CopyOutFirstUseOfSlot)->Arg(4)->Arg(16)->UseRealTime();
BENCHMARK(MapAndUnmap)->Arg(1)->Arg(4)->Arg(16)->UseRealTime();

}  // namespace
}  // namespace mets
