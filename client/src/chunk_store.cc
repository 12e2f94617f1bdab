#include "client/src/chunk_store.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"

namespace mets::client {

Bytes TotalSize(const ChunkSet& chunks) {
  Bytes total;
  for (const Chunk* chunk : chunks) total += chunk->size;
  return total;
}

std::vector<ChunkHandle> HandlesOf(const ChunkSet& chunks) {
  std::vector<ChunkHandle> handles;
  handles.reserve(chunks.size());
  for (const Chunk* chunk : chunks) handles.push_back(chunk->handle);
  return handles;
}

ChunkSet Except(ChunkSet chunks, const std::vector<ChunkSet>& sets) {
  absl::flat_hash_set<const Chunk*> others;
  for (const ChunkSet& set : sets) others.insert(set.begin(), set.end());
  chunks.erase(std::remove_if(
                   chunks.begin(), chunks.end(),
                   [&](const Chunk* chunk) { return others.contains(chunk); }),
               chunks.end());
  return chunks;
}

bool PlanExact(const ChunkCounts& available, Bytes size, ChunkCounts* take) {
  int64_t left = size.count();
  for (auto it = available.rbegin(); it != available.rend() && left > 0; ++it) {
    const int64_t n = std::min(it->second, left / it->first);
    if (n == 0) continue;
    (*take)[it->first] += n;
    left -= n * it->first;
  }
  return left == 0;
}

bool PlanUpTo(const ChunkCounts& available, Bytes size, Bytes most,
              ChunkCounts* take) {
  if (PlanExact(available, size, take)) return true;
  int64_t left = size.count();
  for (const auto& [chunk, count] : *take) left -= chunk * count;
  for (auto it = available.lower_bound(left); it != available.end(); ++it) {
    if (it->first - left > (most - size).count()) return false;
    if (it->second == (*take)[it->first]) continue;
    ++(*take)[it->first];
    return true;
  }
  return false;
}

bool SplitExact(Bytes size, ChunkSet* from, ChunkSet* to) {
  ChunkCounts available, take;
  for (const Chunk* chunk : *from) ++available[chunk->size.count()];
  if (!PlanExact(available, size, &take)) return false;
  ChunkSet rest;
  for (Chunk* chunk : *from) {
    int64_t& wanted = take[chunk->size.count()];
    (wanted > 0 ? *to : rest).push_back(chunk);
    if (wanted > 0) --wanted;
  }
  *from = std::move(rest);
  return true;
}

Chunk* ChunkStore::Find(uint64_t id) {
  auto it = chunks_.find(id);
  return it == chunks_.end() ? nullptr : it->second.get();
}

Chunk* ChunkStore::Add(uint64_t id, Bytes size, ChunkHandle handle) {
  auto chunk = std::make_unique<Chunk>();
  chunk->id = id;
  chunk->size = size;
  chunk->handle = handle;
  Chunk* raw = chunk.get();
  METS_CHECK(chunks_.emplace(id, std::move(chunk)).second) << "chunk " << id;
  return raw;
}

void ChunkStore::Erase(Chunk* chunk) {
  if (chunk->held) Drop(chunk);
  if (chunk->orphan) {
    orphans_.erase(chunk);
  } else {
    chunks_.erase(chunk->id);
  }
}

void ChunkStore::Hold(Chunk* chunk) {
  METS_CHECK(!chunk->held) << "chunk " << chunk->id << " granted twice";
  chunk->held = true;
  held_ += chunk->size;
  ++held_counts_[chunk->size.count()];
}

void ChunkStore::Drop(Chunk* chunk) {
  METS_CHECK(chunk->held) << "chunk " << chunk->id;
  chunk->held = false;
  chunk->streams = 0;
  held_ -= chunk->size;
  --held_counts_[chunk->size.count()];
  if (chunk->orphan) orphan_ -= chunk->size;
}

void ChunkStore::AddIdle(const ChunkSet& chunks) {
  for (Chunk* chunk : chunks) {
    METS_CHECK(chunk->held) << "chunk " << chunk->id;
    idle_[chunk->size.count()].push_back(chunk);
    idle_bytes_ += chunk->size;
    chunk->idle = true;
  }
}

Chunk* ChunkStore::PopIdle(ChunkSet* list) {
  Chunk* chunk = list->back();
  list->pop_back();
  idle_bytes_ -= chunk->size;
  chunk->idle = false;
  return chunk;
}

void ChunkStore::TakeIdle(Chunk* chunk) {
  ChunkSet& list = idle_[chunk->size.count()];
  std::iter_swap(std::find(list.begin(), list.end(), chunk), list.end() - 1);
  PopIdle(&list);
}

ChunkCounts ChunkStore::IdleCounts() const {
  ChunkCounts counts;
  for (const auto& [size, list] : idle_) {
    if (!list.empty()) counts[size] = list.size();
  }
  return counts;
}

ChunkSet ChunkStore::Idle() const {
  ChunkSet chunks;
  for (const auto& [size, list] : idle_) {
    chunks.insert(chunks.end(), list.begin(), list.end());
  }
  return chunks;
}

bool ChunkStore::TakeUpTo(Bytes size, Bytes most, ChunkSet* out) {
  if (idle_bytes_ < size) return false;
  ChunkCounts take;
  if (!PlanUpTo(IdleCounts(), size, most, &take)) return false;
  for (auto it = take.rbegin(); it != take.rend(); ++it) {
    ChunkSet& list = idle_[it->first];
    for (int64_t i = 0; i < it->second; ++i) {
      out->push_back(PopIdle(&list));
    }
  }
  return true;
}

ChunkSet ChunkStore::TakeIdle(Bytes size) {
  ChunkSet taken;
  Bytes total;
  for (auto& [chunk_size, list] : idle_) {
    while (!list.empty() && total < size) {
      taken.push_back(PopIdle(&list));
      total += taken.back()->size;
    }
  }
  return taken;
}

std::vector<ChunkHandle> ChunkStore::BeginEpoch() {
  std::vector<ChunkHandle> forgotten;
  for (auto& [id, chunk] : chunks_) {
    if (!chunk->held && !chunk->shared) {
      forgotten.push_back(chunk->handle);
      continue;
    }
    chunk->orphan = true;
    if (chunk->held) orphan_ += chunk->size;
    Chunk* raw = chunk.get();
    orphans_.emplace(raw, std::move(chunk));
  }
  chunks_.clear();
  return forgotten;
}

std::vector<uint64_t> ChunkStore::HeldIds(bool publishing) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, chunk] : chunks_) {
    if (chunk->held && chunk->publishing == publishing) ids.push_back(id);
  }
  return ids;
}

}  // namespace mets::client
