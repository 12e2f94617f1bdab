// Device: chunks of the sizes that its step needs.
#include <utility>
#include <vector>

#include "client/src/device.h"
#include "client/src/plan_guide.h"
#include "client/src/uplink.h"
#include "common/base/clock.h"

namespace mets::client {
namespace {

// Until others have been made.
constexpr absl::Duration kWait = absl::Milliseconds(200);

std::vector<Bytes> RangesOf(const ChunkCounts& counts) {
  std::vector<Bytes> ranges;
  for (const auto& [size, count] : counts) {
    ranges.insert(ranges.end(), count, Bytes(size));
  }
  return ranges;
}

}  // namespace

void Device::WantChunksFor(const steps::StepProgram& program,
                           const v1::Plan& plan) {
  if (!keeps_mappings_) return;
  absl::MutexLock lock(&mutex_);
  cut_.Want(CutFor(program, steps::AbsencesIn(program, ToStepPlan(plan)),
                   options_.chunk_classes,
                   chunks_.held_bytes() - chunks_.orphan_bytes()));
}

bool Device::ExchangeChunks() {
  ChunkExchange exchange;
  ChunkSet chunks;
  std::vector<Buffer*> ranges;
  {
    absl::MutexLock lock(&mutex_);
    const ChunkCounts& held = chunks_.held_counts();
    // Where jobs take turns, chunks of one stay mapped in the others.
    if (!plan_runner_.following() || gate_.gating() ||
        !cut_.Helps(held, SteadyNow())) {
      return false;
    }
    ChunkSet free = chunks_.Idle();
    for (const Buffer* range = cache_.oldest(); range != nullptr;
         range = range->newer) {
      free.insert(free.end(), range->chunks.begin(), range->chunks.end());
    }
    ChunkCounts counts;
    for (const Chunk* chunk : free) ++counts[chunk->size.count()];
    exchange = cut_.Next(held, counts);
    if (exchange.empty()) return false;
    ChunkCounts left = exchange.give;
    for (Chunk* chunk : free) {
      if (left[chunk->size.count()]-- > 0) chunks.push_back(chunk);
    }
    TakeFree(chunks, &ranges);
  }
  ReturnIdle(Except(TakeApart(ranges), {chunks}));
  GiveBack(chunks, 0);
  Waiting waiting;
  waiting.until = SteadyNow() + kWait;
  waiting.fewest_chunks = true;
  // Nothing is to be evicted for it. Whatever becomes of it, the memory is
  // there for whoever asks next.
  const absl::StatusOr<Grant> grant = uplink_.Acquire(
      *this, RangesOf(exchange.take), absl::InfinitePast(), waiting);
  if (!grant.ok()) return false;
  for (const ChunkSet& range : grant->ranges) ReturnIdle(range);
  return true;
}

}  // namespace mets::client
