#include "client/src/slab_set.h"

#include <algorithm>

#include "common/base/check.h"

namespace mets::client {
namespace {

constexpr uint32_t kSmallestSlot = 64;

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t NextPowerOfTwo(uint64_t value) {
  uint64_t power = kSmallestSlot;
  while (power < value) power *= 2;
  return power;
}

}  // namespace

Slab::Slab(Buffer* buffer, uint32_t slot_bytes, uint32_t slots, Stream stream)
    : buffer_(buffer), slot_bytes_(slot_bytes) {
  debt_.stream = stream;
  bytes_.resize(slots);
  mobility_.resize(slots);
  free_.reserve(slots);
  for (uint32_t i = slots; i > 0; --i) free_.push_back(i - 1);
}

char* Slab::Allocate(uint64_t bytes, Mobility mobility) {
  const uint32_t slot = free_.back();
  free_.pop_back();
  bytes_[slot] = static_cast<uint32_t>(bytes);
  mobility_[slot] = mobility;
  ++count_[static_cast<int>(mobility)];
  ++used_;
  return AddressOf(slot);
}

int Slab::SlotOf(const void* address) const {
  const uint64_t offset = static_cast<const char*>(address) -
                          buffer_->base.load(std::memory_order_relaxed);
  const uint64_t slot = offset / slot_bytes_;
  if (slot >= bytes_.size() || bytes_[slot] == 0) return -1;
  return static_cast<int>(slot);
}

char* Slab::AddressOf(int slot) const {
  return buffer_->base.load(std::memory_order_relaxed) +
         static_cast<uint64_t>(slot) * slot_bytes_;
}

void Slab::Free(int slot, StreamMask used_on) {
  METS_CHECK(bytes_[slot] != 0) << "slot " << slot;
  --count_[static_cast<int>(mobility_[slot])];
  bytes_[slot] = 0;
  --used_;
  free_.push_back(slot);
  const StreamMask others = debt_.stream.Others(used_on);
  if (others == 0) return;
  debt_.others |= others;
  ++debt_.version;
}

void Slab::Settle(const Debt& debt) {
  if (debt.version == debt_.version) debt_.others = 0;
}

void Slab::SetMobility(int slot, Mobility mobility) {
  --count_[static_cast<int>(mobility_[slot])];
  mobility_[slot] = mobility;
  ++count_[static_cast<int>(mobility)];
}

Mobility Slab::mobility() const {
  if (count_[static_cast<int>(Mobility::kFixed)] > 0) return Mobility::kFixed;
  if (count_[static_cast<int>(Mobility::kHeld)] > 0) return Mobility::kHeld;
  return Mobility::kMovable;
}

uint32_t SlabSet::SlotBytes(uint64_t bytes, uint64_t align) {
  const uint64_t power = NextPowerOfTwo(bytes);
  const uint64_t step = std::max<uint64_t>({power / 8, kSmallestSlot, align});
  return static_cast<uint32_t>(RoundUp(bytes, step));
}

Bytes SlabSet::SlabBytes(uint32_t slot_bytes) const {
  return std::max(kSlabSize,
                  Bytes(4 * int64_t{slot_bytes}).RoundUpTo(granularity_));
}

Slab* SlabSet::FindRoom(Mobility mobility, uint32_t slot_bytes, Stream stream) {
  auto it = room_.find({mobility, slot_bytes, stream.bit});
  if (it == room_.end()) return nullptr;
  while (!it->second.empty() && it->second.back()->full()) {
    it->second.pop_back();
  }
  return it->second.empty() ? nullptr : it->second.back();
}

Slab* SlabSet::Add(Buffer* buffer, Mobility mobility, uint32_t slot_bytes,
                   Stream stream) {
  const uint32_t slots = SlabBytes(slot_bytes).count() / slot_bytes;
  auto slab = std::make_unique<Slab>(buffer, slot_bytes, slots, stream);
  Slab* raw = slab.get();
  const Key key = {mobility, slot_bytes, stream.bit};
  slabs_.emplace(raw, Entry{std::move(slab), key});
  room_[key].push_back(raw);
  return raw;
}

void SlabSet::NoteFreed(Slab* slab) {
  std::vector<Slab*>& room = room_[slabs_.at(slab).key];
  if (std::find(room.begin(), room.end(), slab) == room.end()) {
    room.push_back(slab);
  }
}

void SlabSet::Remove(Slab* slab) {
  METS_CHECK(slab->empty());
  auto it = slabs_.find(slab);
  std::vector<Slab*>& room = room_[it->second.key];
  room.erase(std::remove(room.begin(), room.end(), slab), room.end());
  slabs_.erase(it);
}

bool SlabSet::HasOther(Slab* slab) {
  for (Slab* other : room_[slabs_.at(slab).key]) {
    if (other != slab && !other->full()) return true;
  }
  return false;
}

}  // namespace mets::client
