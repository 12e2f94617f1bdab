// SlabSet: small allocations, carved from buffers that move whole.
#ifndef METS_CLIENT_SRC_SLAB_SET_H_
#define METS_CLIENT_SRC_SLAB_SET_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "client/src/buffer.h"
#include "common/base/bytes.h"

namespace mets::client {

// The least size of a slab, and the size of those of who has much in slabs.
inline constexpr Bytes kSmallestSlab = MiB(4);
inline constexpr Bytes kLargestSlab = MiB(32);

// A buffer divided into blocks, used first in the order of one stream. An
// allocation is named by its offset, its *slot*. Guarded by the device's mutex.
class Slab {
 public:
  Buffer* buffer() const { return buffer_; }
  bool empty() const { return used_ == 0; }

  // The slot that `address` points into, or -1 when nothing is allocated there.
  int64_t SlotOf(const void* address) const;
  char* AddressOf(int64_t slot) const;
  uint64_t BytesOf(int64_t slot) const { return begin_.at(slot)->bytes; }
  Mobility MobilityOf(int64_t slot) const { return begin_.at(slot)->mobility; }
  void SetMobility(int64_t slot, Mobility mobility);
  // The least mobile of its allocations decides.
  Mobility mobility() const;

  // What the slab's stream must wait for before a block is used again: other
  // streams' work on freed ones. `version` tells which frees it has.
  struct Debt {
    Stream stream;
    StreamMask others = 0;
    uint64_t version = 0;
  };
  const Debt& debt() const { return debt_; }
  // The stream waits for it now.
  void Settle(const Debt& debt);

 private:
  friend class SlabSet;
  // Slabs of one kind serve the same allocations.
  using Kind = std::pair<Mobility, StreamMask>;
  enum class Use {
    kFree,   // It is in OfKind::free, but for a slab that is set aside.
    kReady,  // See SlabSet; in OfKind::ready, but for a slab that is set aside.
    kTaken,
  };
  // A part of the slab, between its neighbours.
  struct Block {
    Slab* slab = nullptr;
    int64_t offset = 0, size = 0;
    uint64_t bytes = 0;  // Asked for, while it is taken.
    Mobility mobility = Mobility::kMovable;
    Use use = Use::kFree;
    Block *before = nullptr, *after = nullptr;
  };
  // Blocks by KeyOf. The one added last is apart from the others: who allocates
  // or frees many blocks one after another takes it away again.
  class FreeBlocks {
   public:
    void Add(uint64_t key, Block* block);
    void Remove(uint64_t key);
    // The first from `key` on for which `fits`; null when there is none.
    template <typename Fits>
    Block* Find(uint64_t key, Fits fits) const;

   private:
    absl::btree_map<uint64_t, Block*> others_;
    uint64_t last_key_ = 0;
    Block* last_ = nullptr;
  };
  struct OfKind {
    FreeBlocks free;
    std::array<Block*, 256> ready{};  // See SlabSet::ReadyOf.
    std::vector<Slab*> spares;        // See SlabSet::KeepAsSpare.
    Bytes spare_bytes;
  };

  Slab(Buffer* buffer, Bytes size, Stream stream, uint64_t number,
       OfKind* alike);

  // The allocation that `address` points into; null when there is none.
  Block* Find(const void* address) const;
  void Owe(StreamMask used_on);
  // By size, then by the slab's number, then by offset.
  uint64_t KeyOf(const Block* block) const;
  // To and from the free blocks of its kind.
  void AddFree(Block* block);
  void RemoveFree(Block* block);

  Buffer* const buffer_;
  const int64_t size_;
  const uint64_t number_;
  OfKind& alike_;
  Debt debt_;
  uint32_t used_ = 0;
  bool aside_ = false;
  Block* first_ = nullptr;
  // Those that are taken or ready, by offset.
  absl::flat_hash_map<int64_t, Block*> begin_;
  uint32_t count_[3] = {0, 0, 0};  // Allocations by mobility.
};

// The slabs of one device, by (mobility, stream). An allocation gets the
// smallest free block in which it fits, of equals the one in the slab of the
// least number. Training repeats its sizes: of each size (but see ReadyOf) the
// block that was freed last stays as it is, *ready* for the next allocation,
// until no free block fits for another one; then it becomes one with its free
// neighbours. (If more stayed, small ones would lie in the midst of free
// memory, and large ones would need new slabs.) Not thread-safe.
class SlabSet {
 public:
  // `granularity`: buffers' sizes are multiples of this.
  explicit SlabSet(Bytes granularity) : granularity_(granularity) {}

  // A free block that is large enough.
  struct Room {
    Slab* slab = nullptr;
    Slab::Block* block = nullptr;

    bool found() const { return slab != nullptr; }
  };
  // `align`: a power of two up to the granularity; 0: 64.
  Room FindRoom(Mobility mobility, uint64_t bytes, uint64_t align,
                Stream stream = {});
  // REQUIRES: FindRoom has just returned `room` for the same.
  char* Allocate(const Room& room, uint64_t bytes, uint64_t align,
                 Mobility mobility);
  // Frees the allocation that `address` points into. Gives the bytes that were
  // asked for; 0 when nothing is allocated there. `used_on`: streams whose work
  // may still touch it.
  uint64_t Free(Slab* slab, const void* address, StreamMask used_on = 0);

  // Size of the next slab, which is for so much at least. It follows what is
  // allocated: the last slab is seldom full.
  Bytes SlabBytes(uint64_t bytes) const;
  // REQUIRES: the buffer has `size` bytes, and the stream a bit of its own, if
  // it is one. All of the slab is free.
  Room Add(Buffer* buffer, Bytes size, Mobility mobility, Stream stream = {});
  // REQUIRES: the slab is empty.
  void Remove(Slab* slab);
  // Nothing is allocated in it until PutBack: it is not resident.
  void SetAside(Slab* slab);
  void PutBack(Slab* slab);
  // Slabs of each kind stay when they are empty, until together they are as
  // large as two large ones, so that they need not be made again for the next
  // allocations. False: others do. REQUIRES: the slab is empty.
  bool KeepAsSpare(Slab* slab);
  // Those that stay; they may be removed where memory is short.
  std::vector<Slab*> Spares() const;

 private:
  using Kind = Slab::Kind;
  using Block = Slab::Block;
  using Use = Slab::Use;

  // Null when there is none yet.
  Slab::OfKind* FindKind(const Kind& kind);
  // Where the ready block of that size is kept, or of another one with the same
  // place.
  static Block*& ReadyOf(Slab::OfKind& alike, int64_t size) {
    // Fibonacci hashing: sizes are multiples of large powers of two.
    return alike.ready[static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15 >> 56];
  }
  static Room FindFree(const Slab::OfKind& alike, int64_t size, uint64_t align);
  // A new block behind `before` (null: the slab's first).
  Block* Insert(Slab* slab, Block* before, int64_t offset, int64_t size);
  void Drop(Block* block);
  // To and from the ready blocks of its kind; who was ready becomes free.
  void AddReady(Block* block);
  static void RemoveReady(Block* block);
  // The ready block becomes free, and one with its free neighbours.
  void Join(Block* block);
  // No block of the kind is ready any more; false when none was.
  bool JoinReady(Slab::OfKind& alike);
  static void NoSpare(Slab* slab);

  const Bytes granularity_;
  std::deque<Block> blocks_;    // Of all slabs...
  std::vector<Block*> unused_;  // ...and of none.
  std::map<Slab*, std::unique_ptr<Slab>> slabs_;
  std::set<uint64_t> numbers_;  // Of slabs that are gone.
  std::map<Kind, Slab::OfKind> kinds_;
  std::map<Kind, Slab::OfKind>::value_type* recent_kind_ = nullptr;
  int64_t used_bytes_ = 0;  // Of all blocks that are not free.
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_SLAB_SET_H_
