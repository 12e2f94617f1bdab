// Retirement: takes chunks and extents out of existence.
#ifndef METS_DAEMON_CORE_CHUNKS_RETIREMENT_H_
#define METS_DAEMON_CORE_CHUNKS_RETIREMENT_H_

#include <map>
#include <set>
#include <vector>

#include "daemon/core/state.h"

namespace mets::core {

// A chunk or extent that changes domain, and a chunk that changes class, is
// destroyed and its bytes are created anew, so that whoever gets them finds
// zeros. It is destroyed only when every session that has its descriptor has
// answered a ForgetOrder, or ended.
//
// Not thread-safe. Borrows the state.
class Retirement {
 public:
  explicit Retirement(State* state) : state_(*state) {}

  // True when every session that knows the chunk can answer.
  bool CanRetire(const Chunk& chunk) const;
  // REQUIRES: the chunk is free.
  void RetireChunk(size_t device, ChunkId chunk);

  bool CanRetire(const ExtentEntry& extent) const;
  // REQUIRES: the extent is ready and empty.
  void RetireExtent(ExtentId extent);

  // Bytes of a device's chunks whose destruction waits for nobody who cannot
  // answer.
  Bytes Coming(size_t device) const;

  void OnForgotten(const Forgotten& input);
  void OnChunkDestroyed(const ChunkDestroyed& input);
  void OnExtentDestroyed(const ExtentDestroyed& input);
  // A session that ended (and that no ledger names any more): what waited for
  // it alone is destroyed.
  void OnSessionGone();
  // Asks a session that is back about everything that waits for it.
  void AskAgain(const Session& session);
  // Sends what has been collected, one order a session. At the end of a Step.
  void Flush();

 private:
  struct Asked {
    std::vector<ChunkId> chunks;
    std::vector<ExtentId> extents;
  };

  bool KnownToAnyone(ExtentId extent) const;
  void DestroyIfForgotten(size_t device, ChunkId chunk);
  void DestroyIfForgotten(ExtentId extent);

  State& state_;
  std::map<SessionId, Asked> asked_;
  std::set<ChunkId> kept_;  // Somebody refused to forget them.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CHUNKS_RETIREMENT_H_
