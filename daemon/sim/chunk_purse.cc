#include "daemon/sim/chunk_purse.h"

#include <iterator>

namespace mets::sim {

Bytes TotalSize(const Chunks& chunks) {
  Bytes total;
  for (const core::ChunkRef& chunk : chunks) total += chunk.size;
  return total;
}

void ChunkPurse::Put(const Chunks& chunks) {
  for (const core::ChunkRef& chunk : chunks) {
    by_size_[chunk.size].push_back(chunk);
    bytes_ += chunk.size;
  }
}

core::ChunkRef ChunkPurse::Pop(std::map<Bytes, Chunks>::iterator it) {
  const core::ChunkRef chunk = it->second.back();
  it->second.pop_back();
  if (it->second.empty()) by_size_.erase(it);
  bytes_ -= chunk.size;
  return chunk;
}

bool ChunkPurse::Take(Bytes size, Chunks* out) {
  if (bytes_ < size) return false;
  Chunks taken;
  Bytes left = size;
  while (left > Bytes()) {
    auto above = by_size_.upper_bound(left);
    if (above == by_size_.begin()) {
      const bool fits =
          above != by_size_.end() && (above->first - left) * 8 <= size;
      if (!fits) {
        Put(taken);
        return false;
      }
    } else {
      above = std::prev(above);
    }
    taken.push_back(Pop(above));
    left -= taken.back().size;
  }
  out->insert(out->end(), taken.begin(), taken.end());
  return true;
}

Chunks ChunkPurse::TakeAny(Bytes size) {
  Chunks taken;
  for (Bytes left = size; left > Bytes() && !by_size_.empty();) {
    taken.push_back(Pop(by_size_.begin()));
    left -= taken.back().size;
  }
  return taken;
}

}  // namespace mets::sim
