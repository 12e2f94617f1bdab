// Buffer: an address range that holds one large allocation or a slab.
#ifndef METS_CLIENT_SRC_BUFFER_H_
#define METS_CLIENT_SRC_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client/src/buffer_word.h"
#include "client/src/chunk_store.h"
#include "client/src/stream_table.h"
#include "common/base/bytes.h"
#include "common/device/map_driver.h"

namespace mets::client {

class Slab;
struct HeldShare;

enum class Mobility : uint8_t { kMovable = 0, kHeld = 1, kFixed = 2 };

// A place in swap space.
struct SwapSlot {
  uint64_t id = 0;  // 0: none.
  uint64_t epoch = 0;
  std::vector<ExtentPiece> pieces;
};

// What the daemon was last told of a buffer.
struct ReportedBuffer {
  bool known = false;
  bool resident = false;
  bool clean = false;
  bool pinned = false;
  Mobility mobility = Mobility::kMovable;
  uint64_t slot_id = 0;
  int64_t orphan_bytes = 0;
  uint32_t last_use_ms = 0;
  uint32_t logical = 0;  // Compared only when all may have changed.
  bool operator==(const ReportedBuffer& o) const {
    return known == o.known && resident == o.resident && clean == o.clean &&
           pinned == o.pinned && mobility == o.mobility &&
           slot_id == o.slot_id && orphan_bytes == o.orphan_bytes &&
           last_use_ms == o.last_use_ms;
  }
};

// A buffer, or, while its word says kFree, a cached range (mapped) or nothing.
// Objects are never deleted, so that a thread with a stale address finds at
// worst another buffer. Atomics may be read at any time; the rest is guarded by
// the device's mutex, and `chunks` and `slot` change only by the phase's owner.
struct Buffer {
  // As `last_use_ms`: since the last report. The next one puts its own time.
  static constexpr uint32_t kBegun = 0;

  BufferWord word;
  std::atomic<char*> base{nullptr};
  std::atomic<uint64_t> size{0};
  std::atomic<uint32_t> last_use_ms{kBegun};
  std::atomic<bool> dirty{true};
  // Those whose work may still touch the range. Set before the pin of an op
  // that has used it ends; cleared by who has waited, while it is nobody's.
  std::atomic<StreamMask> streams{0};
  // When the last of those ops had ended, or when it was freed; kNow while that
  // is not known.
  std::atomic<StreamTable::Moment> used{0};
  // Evictors that may be reading it, also when an op has brought it back.
  // Lowered with the device's mutex.
  std::atomic<int> copies{0};
  // Ops that wait for memory and will need it: taken last.
  std::atomic<uint32_t> wanted{0};
  std::atomic<Slab*> slab{nullptr};
  std::atomic<HeldShare*> share{nullptr};  // Changed with the device's mutex.

  uint32_t index = 0;       // In the BufferPool.
  uint64_t generation = 0;  // Counts the buffers that this object has been.
  uint64_t bytes = 0;       // As the program asked.
  Mobility mobility = Mobility::kMovable;
  ChunkSet chunks;
  SwapSlot slot;
  std::vector<uint64_t> chunks_before;  // Swapped: those it had, by id.
  bool cached = false;                  // In the RangeCache.

  // Reports.
  ReportedBuffer reported;
  bool in_order = false;       // An order's answer will describe it.
  bool pinned_before = false;  // At the last look.
  uint64_t seen = 0;           // The generation at the last look.

  uint64_t departure = 0;  // Number of the eviction that began last.
  std::string last_op;     // Where there are phantom evictions.

  // Links of the RangeCache.
  Buffer* older = nullptr;
  Buffer* newer = nullptr;
  Buffer* bucket_next = nullptr;
  Buffer* bucket_prev = nullptr;

  bool Contains(const void* address) const {
    const char* a = static_cast<const char*>(address);
    const char* b = base.load(std::memory_order_relaxed);
    return b != nullptr && a >= b &&
           a < b + size.load(std::memory_order_relaxed);
  }
  Bytes range_size() const {
    return Bytes(static_cast<int64_t>(size.load(std::memory_order_relaxed)));
  }
  // Sets the flag only when needed, so that readers share the cache line.
  void MarkDirty() {
    if (!dirty.load(std::memory_order_relaxed)) {
      dirty.store(true, std::memory_order_relaxed);
    }
  }
  void AddStreams(StreamMask more) {
    if ((streams.load(std::memory_order_relaxed) & more) != more) {
      streams.fetch_or(more, std::memory_order_relaxed);
    }
  }
  void Touch(uint32_t now_ms) {
    if (last_use_ms.load(std::memory_order_relaxed) != now_ms) {
      last_use_ms.store(now_ms, std::memory_order_relaxed);
    }
  }
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_BUFFER_H_
