// SlabSet: small allocations, carved from buffers that move whole.
#ifndef METS_CLIENT_SRC_SLAB_SET_H_
#define METS_CLIENT_SRC_SLAB_SET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "client/src/buffer.h"
#include "common/base/bytes.h"

namespace mets::client {

// Of slabs for all but large slots.
inline constexpr Bytes kSlabSize = MiB(4);

// A buffer divided into slots of one size, used first in the order of one
// stream. Guarded by the device's mutex.
class Slab {
 public:
  Slab(Buffer* buffer, uint32_t slot_bytes, uint32_t slots, Stream stream);

  Buffer* buffer() const { return buffer_; }
  uint32_t slot_bytes() const { return slot_bytes_; }
  bool full() const { return free_.empty(); }
  bool empty() const { return used_ == 0; }

  // REQUIRES: not full.
  char* Allocate(uint64_t bytes, Mobility mobility);
  // The slot that `address` points into, or -1 when nothing is allocated there.
  int SlotOf(const void* address) const;
  char* AddressOf(int slot) const;
  uint64_t BytesOf(int slot) const { return bytes_[slot]; }
  Mobility MobilityOf(int slot) const { return mobility_[slot]; }
  // `used_on`: streams whose work may still touch the slot.
  void Free(int slot, StreamMask used_on = 0);
  void SetMobility(int slot, Mobility mobility);
  // The least mobile of its allocations decides.
  Mobility mobility() const;

  // What the slab's stream must wait for before a slot of Allocate is used:
  // other streams' work on freed slots. `version` tells which frees it has.
  struct Debt {
    Stream stream;
    StreamMask others = 0;
    uint64_t version = 0;
  };
  const Debt& debt() const { return debt_; }
  // The stream waits for it now.
  void Settle(const Debt& debt);

 private:
  Buffer* const buffer_;
  const uint32_t slot_bytes_;
  Debt debt_;
  uint32_t used_ = 0;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> bytes_;  // 0: free.
  std::vector<Mobility> mobility_;
  uint32_t count_[3] = {0, 0, 0};  // Allocations by mobility.
};

// The slabs of one device, by (mobility, slot size, stream). Not thread-safe.
class SlabSet {
 public:
  // `granularity`: buffers' sizes are multiples of this.
  explicit SlabSet(Bytes granularity) : granularity_(granularity) {}

  // Slot size for an allocation: quarter steps between powers of two, and a
  // multiple of `align` (a power of two).
  static uint32_t SlotBytes(uint64_t bytes, uint64_t align);

  // Size of the buffer of a slab: has room for four slots at least.
  Bytes SlabBytes(uint32_t slot_bytes) const;

  // A slab with a free slot, or null.
  Slab* FindRoom(Mobility mobility, uint32_t slot_bytes, Stream stream = {});
  // REQUIRES: the buffer has SlabBytes(slot_bytes), and the stream a bit of its
  // own, if it is one.
  Slab* Add(Buffer* buffer, Mobility mobility, uint32_t slot_bytes,
            Stream stream = {});
  // A slot became free.
  void NoteFreed(Slab* slab);
  // REQUIRES: the slab is empty.
  void Remove(Slab* slab);
  // Another empty or half-used slab of its kind exists.
  bool HasOther(Slab* slab);

 private:
  using Key = std::tuple<Mobility, uint32_t, StreamMask>;
  struct Entry {
    std::unique_ptr<Slab> slab;
    Key key;
  };

  const Bytes granularity_;
  std::map<Slab*, Entry> slabs_;
  std::map<Key, std::vector<Slab*>> room_;  // Slabs that may have a free slot.
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_SLAB_SET_H_
