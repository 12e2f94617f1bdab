// ChunkPurse: the chunks of a simulated client that no buffer uses.
#ifndef METS_DAEMON_SIM_CHUNK_PURSE_H_
#define METS_DAEMON_SIM_CHUNK_PURSE_H_

#include <map>
#include <vector>

#include "common/base/bytes.h"
#include "daemon/core/types.h"

namespace mets::sim {

// Of the simulated device: buffers are rounded up to it.
inline constexpr Bytes kSmallestChunk = KiB(64);

using Chunks = std::vector<core::ChunkRef>;

Bytes TotalSize(const Chunks& chunks);

// Not thread-safe.
class ChunkPurse {
 public:
  void Put(const Chunks& chunks);
  // Chunks for at least `size` bytes, largest first; with nothing left to fill
  // the rest exactly, a larger chunk does when no more than an eighth of `size`
  // is wasted. False changes nothing.
  bool Take(Bytes size, Chunks* out);
  // Chunks of at least `size` together, or all; small ones first.
  Chunks TakeAny(Bytes size);
  Bytes bytes() const { return bytes_; }

 private:
  core::ChunkRef Pop(std::map<Bytes, Chunks>::iterator it);

  std::map<Bytes, Chunks> by_size_;
  Bytes bytes_;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_CHUNK_PURSE_H_
