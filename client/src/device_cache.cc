// Device: chunks and ranges that no buffer uses.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

// This process has it, and nobody uses it.
bool IsFree(const Chunk& chunk) {
  return chunk.held &&
         (chunk.idle || (chunk.range != nullptr && chunk.range->cached));
}

// More would take longer to map than it takes to find others.
int64_t FewPieces(Bytes size) { return 4 + size / MiB(32); }

}  // namespace

bool Device::KnowsChunk(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  return chunks_.Find(id) != nullptr;
}

absl::Status Device::ImportChunk(uint64_t id, UniqueFd fd, Bytes size) {
  METS_ASSIGN_OR_RETURN(const ChunkHandle handle,
                        driver_->ImportChunk(std::move(fd), size));
  absl::MutexLock lock(&mutex_);
  chunks_.Add(id, size, handle);
  return absl::OkStatus();
}

absl::StatusOr<Grant> Device::Hold(const std::vector<uint64_t>& ids,
                                   const std::vector<uint32_t>& range_chunks) {
  Grant grant;
  size_t next = 0;
  absl::MutexLock lending(&lending_);
  std::vector<Buffer*> lent;
  absl::ReleasableMutexLock lock(&mutex_);
  for (uint64_t id : ids) {
    Chunk* chunk = chunks_.Find(id);
    if (chunk == nullptr || chunk->held || chunk->shared) {
      return absl::InternalError(
          absl::StrCat("metsd granted chunk ", id, ", which is ",
                       chunk == nullptr ? "unknown" : "in use"));
    }
    if (chunk->lent_in != nullptr) lent.push_back(chunk->lent_in);
  }
  for (uint32_t count : range_chunks) {
    ChunkSet& range = grant.ranges.emplace_back();
    for (uint32_t i = 0; i < count && next < ids.size(); ++i) {
      range.push_back(chunks_.Find(ids[next++]));
      chunks_.Hold(range.back());
    }
  }
  lock.Release();
  EndLoans(lent);
  return grant;
}

void Device::GiveBack(const ChunkSet& chunks, uint64_t order_id) {
  if (chunks.empty()) return;
  AwaitStreams(chunks);
  v1::ClientMessage message;
  v1::Release* release = message.mutable_release();
  release->set_device(options_.id);
  release->set_order_id(order_id);
  std::vector<ChunkHandle> forgotten;
  uint64_t orphan_bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (Chunk* chunk : chunks) {
      if (!chunk->orphan) {
        release->add_chunk_ids(chunk->id);
        chunks_.Drop(chunk);
        continue;
      }
      orphan_bytes += chunk->size.count();
      forgotten.push_back(chunk->handle);
      EraseChunk(chunk);
    }
    // What orphans held is free only once they are closed.
    if (forgotten.empty()) {
      SendLocked(std::move(message));
      return;
    }
    if (release->chunk_ids_size() > 0) SendLocked(message);
  }
  for (ChunkHandle handle : forgotten) driver_->ForgetChunk(handle);
  release->clear_chunk_ids();
  release->set_orphan_bytes(orphan_bytes);
  absl::MutexLock lock(&mutex_);
  SendLocked(std::move(message));
}

void Device::GiveBackGrant(const Grant& grant) {
  for (const ChunkSet& range : grant.ranges) GiveBack(range, 0);
  if (grant.overdraft) ReleaseTokens(1, grant.generation);
}

void Device::ReleaseTokens(int count, uint64_t generation) {
  for (int i = 0; i < count && generation == uplink_.generation(); ++i) {
    v1::ClientMessage message;
    message.mutable_release()->set_device(options_.id);
    message.mutable_release()->set_overdraft(true);
    uplink_.Send(std::move(message));
  }
}

void Device::ReturnIdle(const ChunkSet& chunks) {
  absl::MutexLock lock(&mutex_);
  PutIdle(chunks);
}

void Device::PutIdle(const ChunkSet& chunks) {
  if (chunks.empty()) return;
  chunks_.AddIdle(chunks);
  plan_runner_.SomethingChanged();
}

void Device::PutIdle(Buffer* range) {
  range->used.store(streams_.moment(), std::memory_order_relaxed);
  cache_.Put(range);
  plan_runner_.SomethingChanged();
}

ChunkSet Device::Dismantle(const std::vector<Buffer*>& ranges) {
  AwaitStreams(ranges);
  return TakeApart(ranges);
}

ChunkSet Device::TakeApart(const std::vector<Buffer*>& ranges) {
  AwaitCopies(ranges);
  ChunkSet all;
  absl::Status dead;  // Nothing touches the ranges then.
  for (Buffer* range : ranges) {
    const StreamMask users = range->streams.load(std::memory_order_relaxed);
    const StreamTable::Moment used =
        range->used.load(std::memory_order_relaxed);
    char* base = range->base.load(std::memory_order_relaxed);
    const Bytes size = range->range_size();
    const std::vector<ChunkHandle> handles = HandlesOf(range->chunks);
    for (Chunk* chunk : range->chunks) {
      chunk->streams = users;
      chunk->used = used;
      all.push_back(chunk);
    }
    {
      absl::MutexLock lock(&mutex_);
      table_->Set(base, size.count(), nullptr);
      SetRange(range->chunks, nullptr);
      if (keeps_mappings_) sets_.Remember(range->chunks);
      range->chunks.clear();
      buffers_.Put(range);
    }
    METS_CHECK_OK(driver_->UnmapAfter(streams_.Fences(users, used, &dead), base,
                                      handles));
  }
  return all;
}

bool Device::PickDismantled(const std::vector<Bytes>& sizes, Fill fill,
                            std::vector<Buffer*>* ranges) {
  if (sizes.empty()) return true;
  Bytes need;
  for (Bytes size : sizes) need += size;
  if (chunks_.idle_bytes() + cache_.bytes() < need) return false;
  ChunkCounts available = chunks_.IdleCounts();
  Bytes have = chunks_.idle_bytes();
  const auto suffices = [&](const ChunkCounts& counts, bool few) {
    ChunkCounts left = counts;
    return std::all_of(sizes.begin(), sizes.end(), [&](Bytes size) {
      ChunkCounts take;
      if (!PlanUpTo(left, size, MostOf(size, fill), &take)) return false;
      int64_t pieces = 0;
      for (const auto& [chunk, count] : take) {
        left[chunk] -= count;
        pieces += count;
      }
      return !few || pieces <= FewPieces(size);
    });
  };
  if (keeps_mappings_ && sizes.size() == 1) {
    if (have >= need && suffices(available, true)) return true;
    for (Buffer* range : cache_.AtLeast(need)) {
      ChunkCounts with = available;
      for (const Chunk* chunk : range->chunks) ++with[chunk->size.count()];
      if (!suffices(with, true)) continue;
      ranges->push_back(range);
      return true;
    }
  }
  // Where a mapping costs by the chunk, looks further for few large ones; at
  // twice as much each time, because to look takes time, too.
  Bytes enough = need;
  for (Buffer* next = cache_.oldest();; next = next->newer) {
    if (have >= enough || next == nullptr) {
      if (suffices(available, keeps_mappings_ && next != nullptr)) return true;
      if (keeps_mappings_) enough = have * 2;
    }
    if (next == nullptr) return false;
    for (const Chunk* chunk : next->chunks) ++available[chunk->size.count()];
    have += next->range_size();
    ranges->push_back(next);
  }
}

ChunkSet Device::ChunksBefore(const Buffer& buffer) {
  ChunkSet chunks;
  for (uint64_t id : buffer.chunks_before) {
    Chunk* chunk = chunks_.Find(id);
    if (chunk == nullptr || !IsFree(*chunk)) return {};
    chunks.push_back(chunk);
  }
  // An earlier daemon may have called others so.
  if (TotalSize(chunks) != buffer.range_size()) return {};
  return chunks;
}

ChunkSet Device::TakeTogether(const MemoryNeed& need, Fill fill,
                              std::vector<Buffer*>* ranges) {
  ChunkSet chunks =
      need.back != nullptr
          ? ChunksBefore(*need.back)
          : sets_.Take(need.size, MostOf(need.size, fill), IsFree);
  TakeFree(chunks, ranges);
  return chunks;
}

void Device::TakeFree(const ChunkSet& chunks, std::vector<Buffer*>* ranges) {
  for (Chunk* chunk : chunks) {
    if (chunk->idle) {
      chunks_.TakeIdle(chunk);
    } else if (chunk->range->cached) {
      cache_.Take(chunk->range);
      ranges->push_back(chunk->range);
    }
  }
}

bool Device::TakeLocally(const std::vector<MemoryNeed>& needs,
                         std::vector<ChunkSet>* chunks, Fill fill) {
  std::vector<ChunkSet> taken(needs.size());
  std::vector<Bytes> others;
  std::vector<Buffer*> ranges;
  bool found;
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < needs.size(); ++i) {
      if (keeps_mappings_) taken[i] = TakeTogether(needs[i], fill, &ranges);
      if (taken[i].empty()) others.push_back(needs[i].size);
    }
    std::vector<Buffer*> more;
    found = PickDismantled(others, fill, &more);
    if (found) {
      for (Buffer* range : more) cache_.Take(range);
      ranges.insert(ranges.end(), more.begin(), more.end());
    }
  }
  ChunkSet rest;
  if (!ranges.empty()) rest = Except(TakeApart(ranges), taken);
  absl::MutexLock lock(&mutex_);
  PutIdle(rest);
  for (size_t i = 0; i < needs.size() && found; ++i) {
    if (!taken[i].empty()) continue;
    // Another thread may have been faster.
    found =
        chunks_.TakeUpTo(needs[i].size, MostOf(needs[i].size, fill), &taken[i]);
  }
  if (!found) {
    for (const ChunkSet& set : taken) PutIdle(set);
    return false;
  }
  *chunks = std::move(taken);
  return true;
}

void Device::Trim(Bytes target, uint64_t order_id) {
  std::vector<Buffer*> ranges;
  ChunkSet chunks;
  {
    absl::MutexLock lock(&mutex_);
    chunks = chunks_.TakeIdle(target);
    Bytes have = TotalSize(chunks);
    while (have < target && !cache_.empty()) {
      Buffer* oldest = cache_.oldest();
      cache_.Take(oldest);
      have += oldest->range_size();
      ranges.push_back(oldest);
    }
  }
  GiveBack(chunks, order_id);
  GiveBack(Dismantle(ranges), order_id);
}

bool Device::Forget(uint64_t chunk_id) {
  absl::MutexLock lending(&lending_);
  ChunkHandle handle;
  std::vector<Buffer*> lent;
  {
    absl::MutexLock lock(&mutex_);
    Chunk* chunk = chunks_.Find(chunk_id);
    if (chunk == nullptr) return true;
    if (chunk->held || chunk->shared) return false;
    if (chunk->lent_in != nullptr) lent.push_back(chunk->lent_in);
  }
  EndLoans(lent);
  {
    absl::MutexLock lock(&mutex_);
    Chunk* chunk = chunks_.Find(chunk_id);
    handle = chunk->handle;
    EraseChunk(chunk);
  }
  driver_->ForgetChunk(handle);
  return true;
}

bool Device::KnowsExtent(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  return extents_.Find(id) != ExtentHandle::kNone;
}

absl::Status Device::RegisterExtent(uint64_t id, UniqueFd fd, Bytes size) {
  METS_ASSIGN_OR_RETURN(const ExtentHandle handle,
                        driver_->RegisterExtent(std::move(fd), size));
  absl::MutexLock lock(&mutex_);
  extents_.Add(id, handle);
  return absl::OkStatus();
}

void Device::ForgetExtent(uint64_t extent_id) {
  ExtentHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    handle = extents_.Take(extent_id);
  }
  if (handle != ExtentHandle::kNone) driver_->ForgetExtent(handle);
}

}  // namespace mets::client
