// ChunkLedger: where every byte of one device's pool is.
#ifndef METS_DAEMON_CORE_CHUNKS_CHUNK_LEDGER_H_
#define METS_DAEMON_CORE_CHUNKS_CHUNK_LEDGER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/kept/change.h"

namespace mets::core {

enum class ChunkState {
  kCreating,    // Ordered from the driver.
  kFree,        // Exists; nobody uses it. Stays in its domain.
  kReserved,    // Free, but promised to a request.
  kGranted,     // A session's.
  kShared,      // Of a share, which several sessions may have mapped.
  kDraining,    // To be destroyed once every session has forgotten it.
  kDestroying,  // The driver is destroying it.
  kLost,        // The driver could not destroy it: its bytes never come back.
};
inline constexpr int kChunkStates = 8;

// One chunk. Owned by its ledger, which alone changes it.
struct Chunk {
  // A session that has, or may have, the descriptor.
  struct Knower {
    SessionId session;
    bool certain = true;  // False: sent, but perhaps lost on the way.
  };

  ChunkId id;
  Bytes size;
  size_t size_class = 0;
  DomainId domain;
  ChunkState state = ChunkState::kCreating;
  SessionId holder;      // kGranted: whose it is.
  uint64_t request = 0;  // kReserved, kCreating: for which request; 0: none.
  absl::InlinedVector<Knower, 2> knowers;
  size_t place = 0;  // kFree: in its free list.

  bool KnownTo(SessionId session) const;
};

// The ledger of one device:
//   unallocated + sum over states of bytes(state) + orphan = pool
// where orphan bytes are in chunks of an earlier epoch, known by their holders'
// word alone. Unallocated is negative while orphans exceed what is left (a
// smaller pool after a restart); nothing may be created then.
//
// Not thread-safe. A transition from a wrong state is a METS_CHECK: callers
// check what clients say before.
class ChunkLedger {
 public:
  // `classes` ascending, each dividing the next. `changes`, if there is one, is
  // told of the chunks of device `index`.
  ChunkLedger(Bytes pool, std::vector<Bytes> classes,
              ChangeLog* changes = nullptr, size_t index = 0);
  ChunkLedger(ChunkLedger&&) = default;

  Bytes pool() const { return pool_; }
  const std::vector<Bytes>& classes() const { return classes_; }
  Bytes bytes(ChunkState state) const {
    return bytes_[static_cast<size_t>(state)];
  }
  Bytes orphan() const { return orphan_; }
  // May be negative.
  Bytes unallocated() const;
  // What can be created now; never negative.
  Bytes creatable() const;

  // Null when there is no such chunk. Valid until the chunk is destroyed.
  const Chunk* Find(ChunkId id) const;
  // Null also when it is not `holder`'s.
  const Chunk* FindHeld(ChunkId id, SessionId holder) const;
  // A session's chunks, ascending. Looks at all chunks.
  std::vector<const Chunk*> HeldBy(SessionId holder) const;

  // Free chunks of a domain and class; the most recently freed are last. Valid
  // until the next transition.
  absl::Span<const Chunk* const> Free(DomainId domain, size_t size_class) const;
  // Domains that have ever had free chunks, ascending.
  std::vector<DomainId> Domains() const;

  // --- creation ------------------------------------------------------------
  // REQUIRES: the class's size <= creatable().
  void StartCreating(ChunkId id, size_t size_class, DomainId domain,
                     uint64_t request);
  // The chunk is reserved for its request, or free when that has gone.
  void Created(ChunkId id);
  void CreateFailed(ChunkId id);
  // A predecessor's chunk, which every one of `knowers` may have got.
  // REQUIRES: its size <= creatable(); no other chunk has its id.
  void TakeOver(const KeptChunk& kept, const std::vector<SessionId>& knowers);

  // --- use -----------------------------------------------------------------
  void Reserve(ChunkId id, uint64_t request);
  // The request has gone: a reserved chunk is free again; one that is being
  // created will be free.
  void Unreserve(ChunkId id);
  // A reserved chunk becomes `session`'s. True when its descriptor must be
  // sent.
  bool Grant(ChunkId id, SessionId session);
  // A free chunk becomes `session`'s again. REQUIRES: it is known to it.
  void Regrant(ChunkId id, SessionId session);
  // A granted chunk is free again.
  void Release(ChunkId id);
  // The same of chunks of `holder`, in this order; returns their bytes.
  // INVALID_ARGUMENT, and nothing is released, when one of them is not the
  // holder's or stands there twice.
  absl::StatusOr<Bytes> Release(absl::Span<const ChunkId> ids,
                                SessionId holder);
  // A granted chunk becomes a share's; and is free again.
  void Share(ChunkId id);
  void Unshare(ChunkId id);
  // `session` is to have a shared chunk's descriptor. True when it must be
  // sent.
  bool Know(ChunkId id, SessionId session);

  // --- destruction -----------------------------------------------------------
  // A free chunk is to be destroyed.
  void Drain(ChunkId id);
  // `session` has closed the chunk's descriptor.
  void Forget(ChunkId id, SessionId session);
  // REQUIRES: the chunk drains and nobody knows it.
  void StartDestroying(ChunkId id);
  void Destroyed(ChunkId id);
  void DestroyFailed(ChunkId id);
  // Draining chunks, ascending.
  std::vector<const Chunk*> Draining() const;

  // --- sessions --------------------------------------------------------------
  // The process has ended: it knows no chunk.
  // REQUIRES: it holds none.
  void ForgetSession(SessionId session);
  // Descriptors sent to `session` may have been lost: of the chunks that it
  // does not hold, it knows none for certain.
  void MarkUncertain(SessionId session);
  // REQUIRES: orphan() + change is not negative.
  void ChangeOrphan(Bytes change);

  // OK, or INTERNAL with what does not add up.
  absl::Status Check() const;
  // What a successor has to know of a chunk; nothing of one that does not exist
  // for others.
  std::optional<KeptChunk> Kept(const Chunk& chunk) const;
  // Calls `visit` for every chunk, in no particular order.
  void ForEach(const std::function<void(const Chunk&)>& visit) const;

 private:
  using FreeLists = std::vector<std::vector<Chunk*>>;

  // Null when there is no such chunk.
  Chunk* At(ChunkId id) const;
  Chunk& Get(ChunkId id, ChunkState expected);
  Chunk& Add(ChunkId id, size_t size_class, DomainId domain, ChunkState state);
  void Note(const Chunk& chunk) const;
  static bool AddKnower(Chunk& chunk, SessionId session);
  void Move(Chunk& chunk, ChunkState state);
  void Release(Chunk& chunk);
  void Erase(Chunk& chunk);
  void AddFree(Chunk& chunk);
  void RemoveFree(Chunk& chunk);
  template <typename Wanted>
  std::vector<const Chunk*> Select(Wanted wanted) const;
  absl::Status CheckFreeLists() const;

  const Bytes pool_;
  const std::vector<Bytes> classes_;
  ChangeLog* const changes_;
  const size_t index_;
  Bytes orphan_;
  std::array<Bytes, kChunkStates> bytes_;
  absl::flat_hash_map<ChunkId, std::unique_ptr<Chunk>> chunks_;
  std::map<DomainId, FreeLists> free_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CHUNKS_CHUNK_LEDGER_H_
