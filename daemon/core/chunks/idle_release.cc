#include "daemon/core/chunks/idle_release.h"

#include <algorithm>
#include <utility>

#include "daemon/core/events/notes.h"

namespace mets::core {

absl::Time IdleRelease::After(absl::Time since) const {
  return since + state_.config.idle_release;
}

void IdleRelease::Advance() {
  if (state_.config.idle_release == absl::InfiniteDuration()) return;
  for (size_t i = 0; i < state_.devices.size(); ++i) LookAtChunks(i);
  if (state_.swap.extents().empty()) {
    looked_ = absl::InfiniteFuture();
    empty_.clear();
  } else if (looked_ == absl::InfiniteFuture() ||
             After(looked_) <= state_.now) {
    LookAtExtents();
  }
}

absl::Time IdleRelease::next_deadline() const {
  absl::Time next = After(looked_);
  for (const Least& least : free_) next = std::min(next, After(least.since));
  return next;
}

void IdleRelease::LookAtChunks(size_t device) {
  const ChunkLedger& ledger = state_.devices[device].ledger;
  Least& least = free_[device];
  least.bytes = std::min(least.bytes, ledger.bytes(ChunkState::kFree));
  if (!least.bytes.is_zero() && state_.now < After(least.since)) return;
  if (!least.bytes.is_zero()) {
    NoteReturned(state_, state_.devices[device].config.name,
                 ReleaseChunks(device, least.bytes));
  }
  const Bytes free = ledger.bytes(ChunkState::kFree);
  least = {free.is_zero() ? absl::InfiniteFuture() : state_.now, free};
}

Bytes IdleRelease::ReleaseChunks(size_t device, Bytes bytes) {
  const ChunkLedger& ledger = state_.devices[device].ledger;
  std::vector<ChunkId> chunks;
  Bytes left = bytes;
  for (DomainId domain : ledger.Domains()) {
    for (size_t i = ledger.classes().size(); i-- > 0;) {
      for (const Chunk* chunk : ledger.Free(domain, i)) {
        if (chunk->size > left) break;
        if (!retirement_.CanRetire(*chunk)) continue;
        chunks.push_back(chunk->id);
        left -= chunk->size;
      }
    }
  }
  for (ChunkId chunk : chunks) retirement_.RetireChunk(device, chunk);
  return bytes - left;
}

void IdleRelease::LookAtExtents() {
  looked_ = state_.now;
  std::vector<ExtentId> idle;
  std::map<ExtentId, uint64_t> empty;
  Bytes bytes;
  for (const auto& [id, extent] : state_.swap.extents()) {
    if (!retirement_.CanRetire(extent)) continue;
    const auto before = empty_.find(id);
    if (before != empty_.end() && before->second == extent.space.takes()) {
      idle.push_back(id);
      bytes += extent.space.size();
    } else {
      empty.emplace(id, extent.space.takes());
    }
  }
  for (ExtentId id : idle) retirement_.RetireExtent(id);
  empty_ = std::move(empty);
  NoteReturned(state_, "", bytes);
}

}  // namespace mets::core
