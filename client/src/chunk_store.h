// ChunkStore: the chunks that this process has imported.
#ifndef METS_CLIENT_SRC_CHUNK_STORE_H_
#define METS_CLIENT_SRC_CHUNK_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/src/stream_table.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"

namespace mets::client {

struct Buffer;

// An imported chunk. Owned by its ChunkStore.
struct Chunk {
  uint64_t id = 0;
  Bytes size;
  ChunkHandle handle = ChunkHandle::kNone;
  // Granted to this process: in a buffer, a cached range, a reservation, or
  // idle. What is not held stays imported, so that it comes back at no cost.
  bool held = false;
  // Granted by an earlier daemon.
  bool orphan = false;
  // Held, but perhaps a share's by now: metsd has been asked to publish it.
  bool publishing = false;
  // Of a share that this process has: mapped, and not held.
  bool shared = false;
  // Idle: whose work may still touch it, as of a buffer (buffer.h).
  StreamMask streams = 0;
  StreamTable::Moment used = 0;
  bool idle = false;  // In the store's lists of those.
  // The buffer or cached range that has it; null: none.
  Buffer* range = nullptr;
  // The lent range in which it is still mapped; null: none.
  Buffer* lent_in = nullptr;
};
using ChunkSet = std::vector<Chunk*>;
using ChunkCounts = std::map<int64_t, int64_t>;  // By size.

Bytes TotalSize(const ChunkSet& chunks);
std::vector<ChunkHandle> HandlesOf(const ChunkSet& chunks);

// Chunks of one device by identifier, and which of the held ones are idle
// (nobody uses them). Not thread-safe.
class ChunkStore {
 public:
  // Null when it is not imported. Orphans have no identifier.
  Chunk* Find(uint64_t id);
  Chunk* Add(uint64_t id, Bytes size, ChunkHandle handle);
  // Removes it; the caller tells the driver. REQUIRES: not idle.
  void Erase(Chunk* chunk);

  void Hold(Chunk* chunk);
  // No longer this process's. REQUIRES: not idle, and nobody's work touches it.
  void Drop(Chunk* chunk);

  Bytes held_bytes() const { return held_; }
  Bytes orphan_bytes() const { return orphan_; }
  Bytes idle_bytes() const { return idle_bytes_; }
  const ChunkCounts& held_counts() const { return held_counts_; }

  void AddIdle(const ChunkSet& chunks);
  ChunkCounts IdleCounts() const;
  ChunkSet Idle() const;
  // Idle chunks that fill exactly `size`, largest first; false changes nothing.
  bool TakeExact(Bytes size, ChunkSet* out) {
    return TakeUpTo(size, size, out);
  }
  // The same, or where none do, `most` at most.
  bool TakeUpTo(Bytes size, Bytes most, ChunkSet* out);
  // This one, which is idle.
  void TakeIdle(Chunk* chunk);
  // Idle chunks of at least `size` together, or all of them; small ones first.
  ChunkSet TakeIdle(Bytes size);

  // The daemon is a new one: held and shared chunks are orphans from now on.
  // Returns the others, which are no longer in the store.
  std::vector<ChunkHandle> BeginEpoch();

  // Identifiers of what is held, orphans excluded, and what is being published
  // or not.
  std::vector<uint64_t> HeldIds(bool publishing = false) const;

 private:
  // The last of an idle list.
  Chunk* PopIdle(ChunkSet* list);

  absl::flat_hash_map<uint64_t, std::unique_ptr<Chunk>> chunks_;
  absl::flat_hash_map<Chunk*, std::unique_ptr<Chunk>> orphans_;
  std::map<int64_t, ChunkSet> idle_;  // By size.
  ChunkCounts held_counts_;
  Bytes held_, orphan_, idle_bytes_;
};

// Those of `chunks` that are in none of `sets`.
ChunkSet Except(ChunkSet chunks, const std::vector<ChunkSet>& sets);

// Picks, from chunks counted by size, those that fill `size` exactly. `take`
// gets how many of each. Sizes divide one another.
bool PlanExact(const ChunkCounts& available, Bytes size, ChunkCounts* take);

// The same, or, where none do, with one chunk more, to `most` at most.
bool PlanUpTo(const ChunkCounts& available, Bytes size, Bytes most,
              ChunkCounts* take);

// Moves chunks that fill exactly `size` from one set to another; false changes
// nothing.
bool SplitExact(Bytes size, ChunkSet* from, ChunkSet* to);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_CHUNK_STORE_H_
