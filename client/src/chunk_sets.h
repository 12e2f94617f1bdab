// ChunkSets: which chunks have been a range together.
#ifndef METS_CLIENT_SRC_CHUNK_SETS_H_
#define METS_CLIENT_SRC_CHUNK_SETS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "absl/functional/function_ref.h"
#include "client/src/chunk_store.h"
#include "common/base/bytes.h"

namespace mets::client {

// Sets of chunks whose ranges were taken apart, by size. A driver that keeps
// mappings (MapDriverInfo) has them mapped already: a step that needs the same
// sizes again and again maps nothing more once it takes the same sets.
//
// Borrows the chunks. Not thread-safe.
class ChunkSets {
 public:
  static constexpr size_t kMost = 1024;  // Older ones are forgotten.
  static constexpr int kLooks = 64;      // At sets of one size.

  void Remember(const ChunkSet& chunks);
  // The latest set of at least `size` and at most `most` of which all chunks
  // are free, the smallest size first, which is remembered no longer; empty
  // when there is none.
  ChunkSet Take(Bytes size, Bytes most,
                absl::FunctionRef<bool(const Chunk&)> is_free);
  // The chunk goes away.
  void Forget(const Chunk* chunk);
  void Clear();

 private:
  struct Entry {
    uint64_t age;
    ChunkSet chunks;
  };
  std::map<int64_t, std::list<Entry>> by_size_;  // The latest first.
  size_t count_ = 0;
  uint64_t last_ = 0;

  void DropOldest();
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_CHUNK_SETS_H_
