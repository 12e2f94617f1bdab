// Device: what is free between two turns. Invariants:
//  * a range is lent from Lend until it is cached again or unmapped; its chunks
//    are not held, or have just been granted again by Regrant;
//  * a chunk that is in use, idle or forgotten is mapped in no lent range.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "client/src/log.h"

namespace mets::client {
namespace {

bool AllHeld(const ChunkSet& chunks) {
  return std::all_of(chunks.begin(), chunks.end(),
                     [](const Chunk* chunk) { return chunk->held; });
}

bool AnyHeld(const ChunkSet& chunks) {
  return std::any_of(chunks.begin(), chunks.end(),
                     [](const Chunk* chunk) { return chunk->held; });
}

}  // namespace

void Device::Lend() {
  v1::ClientMessage message;
  v1::Release* release = message.mutable_release();
  release->set_device(options_.id);
  release->set_lent(true);
  absl::MutexLock lending(&lending_);
  absl::MutexLock lock(&mutex_);
  if (muted_) return;  // It would not come back.
  const auto give = [&](Chunk* chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    release->add_chunk_ids(chunk->id);
    chunks_.Drop(chunk);
  };
  ChunkSet orphans;
  for (Chunk* chunk : chunks_.TakeIdle(chunks_.idle_bytes())) {
    if (chunk->orphan) {
      orphans.push_back(chunk);
    } else {
      give(chunk);
    }
  }
  chunks_.AddIdle(orphans);
  for (Buffer* range = cache_.oldest(); range != nullptr;) {
    Buffer* next = range->newer;
    const bool orphan =
        std::any_of(range->chunks.begin(), range->chunks.end(),
                    [](const Chunk* chunk) { return chunk->orphan; });
    if (!orphan) {
      cache_.Take(range);
      for (Chunk* chunk : range->chunks) {
        give(chunk);
        chunk->lent_in = range;
      }
      lent_.push_back(range);
    }
    range = next;
  }
  if (release->chunk_ids_size() > 0) SendLocked(std::move(message));
}

void Device::Unlist(const std::vector<Buffer*>& ranges) {
  for (Buffer* range : ranges) {
    for (Chunk* chunk : range->chunks) chunk->lent_in = nullptr;
  }
  const auto ended = [](const Buffer* range) {
    return range->chunks[0]->lent_in == nullptr;
  };
  lent_.erase(std::remove_if(lent_.begin(), lent_.end(), ended), lent_.end());
}

void Device::EndLoans(const std::vector<Buffer*>& lent) {
  std::vector<Buffer*> ranges = lent;
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  if (ranges.empty()) return;
  {
    absl::MutexLock lock(&mutex_);
    Unlist(ranges);
  }
  Dismantle(ranges);
}

void Device::EndAllLoans() {
  absl::MutexLock lending(&lending_);
  std::vector<Buffer*> all;
  {
    absl::MutexLock lock(&mutex_);
    all = lent_;
  }
  EndLoans(all);
}

void Device::CacheWhatIsWhole(std::vector<Buffer*>* broken) {
  std::vector<Buffer*> whole;
  for (Buffer* range : lent_) {
    if (AllHeld(range->chunks)) {
      whole.push_back(range);
    } else if (AnyHeld(range->chunks)) {
      broken->push_back(range);
    }
  }
  Unlist(whole);
  for (Buffer* range : whole) PutIdle(range);
}

void Device::Regrant(const v1::Regrant& regrant) {
  absl::MutexLock lending(&lending_);
  std::vector<Buffer*> broken;
  ChunkSet loose;  // In no range that is whole.
  {
    absl::MutexLock lock(&mutex_);
    for (uint64_t id : regrant.chunk_ids()) {
      Chunk* chunk = chunks_.Find(id);
      if (chunk == nullptr || chunk->held) {
        Log(LogLevel::kError,
            absl::StrCat("metsd granted chunk ", id, " again, which is ",
                         chunk == nullptr ? "unknown" : "in use"));
        continue;
      }
      chunks_.Hold(chunk);
      if (chunk->lent_in == nullptr) loose.push_back(chunk);
    }
    reported_cached_.reset();
    CacheWhatIsWhole(&broken);
    for (const Buffer* range : broken) {
      std::copy_if(range->chunks.begin(), range->chunks.end(),
                   std::back_inserter(loose),
                   [](const Chunk* chunk) { return chunk->held; });
    }
  }
  EndLoans(broken);
  ReturnIdle(loose);
}

}  // namespace mets::client
