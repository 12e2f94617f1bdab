// Device: what the daemon and the program are told.
#include <algorithm>
#include <utility>

#include "client/src/device.h"

namespace mets::client {
namespace {

// Keeps messages far below 1 MiB.
constexpr int kBuffersPerMessage = 8000;
constexpr int kChunksPerMessage = 50000;
// Counters that have changed, and nothing else, are reported so often.
constexpr uint32_t kTotalsPeriodMs = 500;

v1::Mobility ToProto(Mobility mobility) {
  switch (mobility) {
    case Mobility::kMovable:
      return v1::MOBILITY_MOVABLE;
    case Mobility::kHeld:
      return v1::MOBILITY_HELD;
    case Mobility::kFixed:
      return v1::MOBILITY_FIXED;
  }
  return v1::MOBILITY_UNSPECIFIED;
}

}  // namespace

Bytes Device::CachedBytes() const {
  return chunks_.held_bytes() - buffer_bytes_;
}

v1::Totals Device::CurrentTotals() {
  v1::Totals message;
  v1::Totals* totals = &message;
  totals->set_evicted_bytes(totals_.evicted_bytes);
  totals->set_restored_bytes(totals_.restored_bytes);
  totals->set_evictions(totals_.evictions);
  totals->set_restores(totals_.restores);
  totals->set_unobserved_accesses(totals_.unobserved_accesses);
  totals->set_clean_evictions(totals_.clean_evictions);
  totals->set_restore_stall_us(absl::ToInt64Microseconds(stalls_.waited()));
  const steps::StepMeter::Totals& steps = step_meter_.totals();
  totals->set_steps(steps.steps);
  totals->set_step_us(absl::ToInt64Microseconds(steps.time));
  totals->set_step_wait_us(absl::ToInt64Microseconds(steps.wait));
  totals->set_peak_live_bytes(peak_live_bytes_);
  totals->set_peak_resident_bytes(peak_buffer_bytes_.count());
  return message;
}

void Device::FillTotals(v1::Totals* totals) {
  *totals = CurrentTotals();
  reported_totals_ = totals->SerializeAsString();
  totals_told_ms_ = CoarseNowMs();
}

bool Device::TotalsDue() {
  return CoarseNowMs() - totals_told_ms_ >= kTotalsPeriodMs &&
         CurrentTotals().SerializeAsString() != reported_totals_;
}

ReportedBuffer Device::Describe(Buffer* buffer, uint64_t epoch) {
  ReportedBuffer now;
  now.known = true;
  now.resident = IsResident(buffer->word.phase());
  now.mobility = buffer->mobility;
  const bool pinned = buffer->word.pinned();
  now.pinned = pinned && buffer->pinned_before;
  buffer->pinned_before = pinned;
  const bool own_slot = buffer->slot.id != 0 && buffer->slot.epoch == epoch;
  now.clean = now.resident && own_slot &&
              !buffer->dirty.load(std::memory_order_relaxed);
  if (own_slot && (now.clean || !now.resident)) now.slot_id = buffer->slot.id;
  for (const Chunk* chunk : buffer->chunks) {
    if (chunk->orphan) now.orphan_bytes += chunk->size.count();
  }
  if (buffer->last_use_ms.load(std::memory_order_relaxed) == Buffer::kBegun) {
    buffer->Touch(CoarseNowMs());
  }
  now.last_use_ms = buffer->last_use_ms.load(std::memory_order_relaxed);
  return now;
}

void Device::FillReport(Buffer* buffer, const ReportedBuffer& now,
                        v1::BufferReport* report) {
  report->set_buffer_id(BufferPool::IdOf(*buffer));
  report->set_size_bytes(buffer->size.load(std::memory_order_relaxed));
  report->set_state(now.resident ? v1::BUFFER_STATE_RESIDENT
                                 : v1::BUFFER_STATE_SWAPPED);
  report->set_mobility(ToProto(now.mobility));
  report->set_clean(now.clean);
  report->set_pinned(now.pinned);
  report->set_slot_id(now.slot_id);
  report->set_orphan_bytes(now.orphan_bytes);
  const int32_t idle = static_cast<int32_t>(CoarseNowMs() - now.last_use_ms);
  report->set_idle_ms(std::max(idle, 0));
  buffer->reported = now;
  if (buffer->slab.load(std::memory_order_relaxed) == nullptr) {
    buffer->reported.logical = step_watch_.LogicalOf(BufferPool::IdOf(*buffer));
  }
  report->set_logical(buffer->reported.logical);
}

bool Device::ReportChanges(ReportScope scope) {
  absl::MutexLock lock(&mutex_);
  if (muted_) return false;
  const uint64_t epoch = uplink_.epoch();
  v1::ClientMessage message;
  v1::BufferChanges* changes = message.mutable_buffer_changes();
  for (uint64_t id : freed_ids_) {
    v1::BufferReport* report = changes->add_buffers();
    report->set_buffer_id(id);
    report->set_freed(true);
  }
  freed_ids_.clear();
  const uint64_t version = step_watch_.version();
  const bool renumbered = std::exchange(reported_version_, version) != version;
  Bytes pinned;
  for (Buffer& buffer : buffers_.all()) {
    if (buffer.word.phase() == Phase::kFree || buffer.in_order ||
        buffer.share.load(std::memory_order_relaxed) != nullptr) {
      continue;
    }
    ReportedBuffer now = Describe(&buffer, epoch);
    if (now.pinned) pinned += buffer.range_size();
    const bool lasts =
        std::exchange(buffer.seen, buffer.generation) == buffer.generation;
    if (scope != ReportScope::kAll && !lasts && !buffer.reported.known) {
      continue;
    }
    if (scope == ReportScope::kLasting && buffer.reported.known) {
      now.last_use_ms = buffer.reported.last_use_ms;
    }
    if (now == buffer.reported &&
        !(renumbered && buffer.reported.logical !=
                            step_watch_.LogicalOf(BufferPool::IdOf(buffer)))) {
      continue;
    }
    FillReport(&buffer, now, changes->add_buffers());
    if (changes->buffers_size() < kBuffersPerMessage) continue;
    changes->set_device(options_.id);
    changes->set_cached_bytes(CachedBytes().count());
    FillTotals(changes->mutable_totals());
    uplink_.Send(std::move(message));
    message = v1::ClientMessage();
    changes = message.mutable_buffer_changes();
  }
  if (changes->buffers_size() == 0 && CachedBytes() == reported_cached_ &&
      !TotalsDue()) {
    return false;
  }
  reported_cached_ = CachedBytes();
  changes->set_device(options_.id);
  changes->set_cached_bytes(reported_cached_->count());
  changes->set_pinned_bytes(pinned.count());
  FillTotals(changes->mutable_totals());
  uplink_.Send(std::move(message));
  return true;
}

bool Device::SendLastTotals() {
  absl::MutexLock lock(&mutex_);
  if (muted_ || CurrentTotals().SerializeAsString() == reported_totals_) {
    return false;
  }
  v1::ClientMessage message;
  v1::BufferChanges* changes = message.mutable_buffer_changes();
  changes->set_device(options_.id);
  changes->set_cached_bytes(CachedBytes().count());
  FillTotals(changes->mutable_totals());
  uplink_.Send(std::move(message));
  return true;
}

void Device::BeginEpoch(uint64_t old_epoch) {
  std::vector<ChunkHandle> forgotten;
  std::vector<ExtentHandle> extents;
  {
    absl::MutexLock lock(&mutex_);
    forgotten = chunks_.BeginEpoch();
    sets_.Clear();
    Bytes in_slots;
    for (Buffer& buffer : buffers_.all()) {
      const Phase phase = buffer.word.phase();
      if (phase == Phase::kFree || IsResident(phase)) continue;
      if (buffer.slot.epoch == old_epoch) in_slots += buffer.range_size();
    }
    slot_owners_.clear();
    extents_.BeginEpoch(old_epoch, in_slots);
    extents = extents_.DropOrphan(old_epoch, Bytes());
  }
  for (ChunkHandle handle : forgotten) driver_->ForgetChunk(handle);
  for (ExtentHandle handle : extents) driver_->ForgetExtent(handle);
}

void Device::Mute() {
  BreakRecording();
  {
    absl::MutexLock lock(&mutex_);
    muted_ = true;
    step_meter_.Forget();
  }
  EndPlan();
  EndAllLoans();
}

void Device::SendSnapshot(bool last) {
  absl::MutexLock lock(&mutex_);
  muted_ = false;
  step_watch_.Forget();
  const uint64_t epoch = uplink_.epoch();
  std::vector<v1::ClientMessage> parts(1);
  const auto part = [&parts] { return parts.back().mutable_snapshot(); };
  for (uint64_t id : chunks_.HeldIds()) {
    if (part()->chunk_ids_size() >= kChunksPerMessage) parts.emplace_back();
    part()->add_chunk_ids(id);
  }
  for (uint64_t id : chunks_.HeldIds(/*publishing=*/true)) {
    if (part()->publishing_chunk_ids_size() >= kChunksPerMessage) {
      parts.emplace_back();
    }
    part()->add_publishing_chunk_ids(id);
  }
  for (const HeldShare& share : shares_) {
    v1::HeldShare* held = part()->add_shares();
    held->set_share_id(share.id);
    held->set_epoch(share.epoch);
    held->set_size_bytes(share.size.count());
  }
  for (Buffer& buffer : buffers_.all()) {
    buffer.reported = ReportedBuffer();
    if (buffer.word.phase() == Phase::kFree ||
        buffer.share.load(std::memory_order_relaxed) != nullptr) {
      continue;
    }
    if (part()->buffers_size() >= kBuffersPerMessage) parts.emplace_back();
    FillReport(&buffer, Describe(&buffer, epoch), part()->add_buffers());
  }
  freed_ids_.clear();
  reported_cached_ = CachedBytes();
  for (v1::ClientMessage& message : parts) {
    v1::Snapshot* snapshot = message.mutable_snapshot();
    snapshot->set_device(options_.id);
    snapshot->set_epoch(epoch);
    snapshot->set_orphan_bytes(chunks_.orphan_bytes().count());
    snapshot->set_orphan_swap_bytes(extents_.orphan_bytes().count());
    snapshot->set_cached_bytes(reported_cached_->count());
    FillTotals(snapshot->mutable_totals());
    snapshot->set_last(last && &message == &parts.back());
    uplink_.Send(std::move(message));
  }
}

void Device::AnswerEvictions(v1::OrderDone done) {
  absl::MutexLock lock(&mutex_);
  for (v1::BufferResult& result : *done.mutable_results()) {
    if (result.outcome() != v1::BUFFER_OUTCOME_DONE) continue;
    Buffer* buffer = buffers_.Find(result.buffer_id());
    if (buffer == nullptr) {
      result.set_outcome(v1::BUFFER_OUTCOME_FREED);
      continue;
    }
    // What has changed since is reported as a change.
    buffer->in_order = false;
    buffer->reported.known = true;
    buffer->reported.resident = false;
    buffer->reported.clean = false;
    buffer->reported.slot_id = result.slot_id();
    buffer->reported.orphan_bytes = 0;
  }
  // Under the lock: a report of what has changed since must not be overtaken.
  v1::ClientMessage message;
  *message.mutable_order_done() = std::move(done);
  SendLocked(std::move(message));
}

void Device::GetStats(mets_stats_t* stats) {
  absl::MutexLock lock(&mutex_);
  for (Buffer& buffer : buffers_.all()) {
    const Phase phase = buffer.word.phase();
    if (phase == Phase::kFree || !IsResident(phase)) continue;
    const uint64_t size = buffer.size.load(std::memory_order_relaxed);
    if (buffer.word.pinned()) stats->pinned_bytes += size;
    if (buffer.mobility == Mobility::kHeld) stats->held_bytes += size;
  }
  stats->live_bytes = live_bytes_;
  stats->peak_live_bytes = peak_live_bytes_;
  stats->resident_bytes = buffer_bytes_.count();
  stats->cached_bytes = CachedBytes().count();
  stats->swapped_bytes = swapped_bytes_.count();
  stats->evicted_bytes_total = totals_.evicted_bytes;
  stats->restored_bytes_total = totals_.restored_bytes;
  stats->clean_evictions_total = totals_.clean_evictions;
  stats->unobserved_accesses_total = totals_.unobserved_accesses;
  stats->allocations_total = allocations_;
  stats->cache_hits_total = cache_hits_;
  stats->acquires_total = totals_.acquires;
  stats->waits_total = totals_.waits;
  stats->wait_ns_total = totals_.wait_ns;
  stats->waited_ns_total = absl::ToInt64Nanoseconds(waits_.waited());
  stats->stalled_ns_total = absl::ToInt64Nanoseconds(stalls_.waited());
}

void Device::MemoryInfo(uint64_t* free, uint64_t* total) {
  absl::MutexLock lock(&mutex_);
  const int64_t limit = limit_.load();
  const int64_t most = limit > 0 ? std::min(limit, options_.pool.count())
                                 : options_.pool.count();
  *total = most;
  *free = std::max<int64_t>(most - buffer_bytes_.count(), 0);
}

}  // namespace mets::client
