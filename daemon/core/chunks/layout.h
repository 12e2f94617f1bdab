// PlanLayout: from which chunks a request's ranges are built.
#ifndef METS_DAEMON_CORE_CHUNKS_LAYOUT_H_
#define METS_DAEMON_CORE_CHUNKS_LAYOUT_H_

#include <vector>

#include "daemon/core/chunks/chunk_ledger.h"

namespace mets::core {

// Chunks for the ranges of one request, range by range.
struct Layout {
  struct Piece {
    ChunkId chunk;          // A free chunk; none: to be created.
    size_t size_class = 0;  // Of the chunk.
  };
  std::vector<Piece> pieces;
  std::vector<uint32_t> range_pieces;  // How many pieces each range has.
  Bytes missing;  // For which there is neither a chunk nor room for one.
};

enum class PieceBound {
  kFewest,     // Of the classes that make the fewest; others are missing.
  kBounded,    // At most 64 pieces a range (or twice the fewest possible).
  kUnbounded,  // As many as it takes.
};

// Lays out `ranges` (multiples of the smallest class) from the largest class
// that fits down: free chunks of `domain` first, those known to `session`
// before others, then new chunks of at most `creatable` bytes together, then
// several smaller ones. Changes nothing.
Layout PlanLayout(const ChunkLedger& ledger, DomainId domain, SessionId session,
                  const std::vector<Bytes>& ranges, Bytes creatable,
                  PieceBound bound);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_CHUNKS_LAYOUT_H_
