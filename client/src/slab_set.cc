#include "client/src/slab_set.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace mets::client {
namespace {

// Blocks begin and end at multiples of the one; who asks for a larger alignment
// asks for it again and again, so that its sizes are rounded up to it, up to
// the other.
constexpr uint64_t kUnit = 64;
constexpr uint64_t kLargestUnit = 512;
// A new slab's part of what is allocated.
constexpr int64_t kSlabPart = 16;

int64_t RoundUp(uint64_t value, uint64_t unit) {
  return static_cast<int64_t>((value + unit - 1) / unit * unit);
}

int64_t BlockBytes(uint64_t bytes, uint64_t align) {
  return RoundUp(bytes, std::clamp(align, kUnit, kLargestUnit));
}

int64_t Aligned(int64_t offset, uint64_t align) {
  return RoundUp(offset, std::max(align, kUnit));
}

}  // namespace

Slab::Slab(Buffer* buffer, Bytes size, Stream stream)
    : buffer_(buffer), size_(size.count()) {
  debt_.stream = stream;
}

int64_t Slab::SlotOf(const void* address) const {
  const int64_t offset = static_cast<const char*>(address) -
                         buffer_->base.load(std::memory_order_relaxed);
  if (offset < 0 || offset >= size_) return -1;
  const auto it = std::prev(blocks_.upper_bound(offset));
  return it->second.bytes == 0 ? -1 : it->first;
}

char* Slab::AddressOf(int64_t slot) const {
  return buffer_->base.load(std::memory_order_relaxed) + slot;
}

void Slab::Owe(StreamMask used_on) {
  const StreamMask others = debt_.stream.Others(used_on);
  if (others == 0) return;
  debt_.others |= others;
  ++debt_.version;
}

void Slab::Settle(const Debt& debt) {
  if (debt.version == debt_.version) debt_.others = 0;
}

void Slab::SetMobility(int64_t slot, Mobility mobility) {
  Block& block = blocks_.at(slot);
  --count_[static_cast<int>(block.mobility)];
  block.mobility = mobility;
  ++count_[static_cast<int>(mobility)];
}

Mobility Slab::mobility() const {
  if (count_[static_cast<int>(Mobility::kFixed)] > 0) return Mobility::kFixed;
  if (count_[static_cast<int>(Mobility::kHeld)] > 0) return Mobility::kHeld;
  return Mobility::kMovable;
}

SlabSet::FreeBlock SlabSet::Named(const Entry& entry, int64_t offset) const {
  Slab* slab = entry.slab.get();
  return {slab->blocks_.at(offset).size, entry.number, slab, offset};
}

void SlabSet::AddFree(const Entry& entry, int64_t offset, int64_t size) {
  entry.slab->blocks_[offset] = {size, 0, Mobility::kMovable, false};
  free_[entry.key].insert(Named(entry, offset));
}

void SlabSet::RemoveFree(const Entry& entry, int64_t offset) {
  free_[entry.key].erase(Named(entry, offset));
  entry.slab->blocks_.erase(offset);
}

SlabSet::Room SlabSet::FindRoom(Mobility mobility, uint64_t bytes,
                                uint64_t align, Stream stream) {
  const int64_t size = BlockBytes(bytes, align);
  const Key key = {mobility, stream.bit};
  const auto ready = ready_.find({mobility, stream.bit, size});
  if (ready != ready_.end() && !ready->second.empty()) {
    const Room room = ready->second.back();
    if (Aligned(room.offset, align) == room.offset) return room;
  }
  const Room room = FindFree(key, size, align);
  if (room.found() || !JoinReady(key)) return room;
  return FindFree(key, size, align);
}

SlabSet::Room SlabSet::FindFree(const Key& key, int64_t size,
                                uint64_t align) const {
  const auto kind = free_.find(key);
  if (kind == free_.end()) return {};
  for (auto it = kind->second.lower_bound({size, 0, nullptr, 0});
       it != kind->second.end(); ++it) {
    const auto& [has, number, slab, offset] = *it;
    if (Aligned(offset, align) + size <= offset + has) return {slab, offset};
  }
  return {};
}

char* SlabSet::Allocate(const Room& room, uint64_t bytes, uint64_t align,
                        Mobility mobility) {
  Slab* slab = room.slab;
  const Entry& entry = slabs_.at(slab);
  const Slab::Block block = slab->blocks_.at(room.offset);
  const int64_t end = room.offset + block.size;
  const int64_t begin = Aligned(room.offset, align);
  const int64_t size = BlockBytes(bytes, align);
  METS_CHECK(begin + size <= end) << "a block of " << block.size;
  if (block.ready) {
    ready_[{entry.key.first, entry.key.second, size}].pop_back();
  } else {
    RemoveFree(entry, room.offset);
    if (begin > room.offset) AddFree(entry, room.offset, begin - room.offset);
    if (begin + size < end) AddFree(entry, begin + size, end - begin - size);
  }
  slab->blocks_[begin] = {size, bytes, mobility, false};
  ++slab->count_[static_cast<int>(mobility)];
  ++slab->used_;
  used_bytes_ += size;
  return slab->AddressOf(begin);
}

void SlabSet::Free(Slab* slab, int64_t slot, StreamMask used_on) {
  const Entry& entry = slabs_.at(slab);
  Slab::Block& block = slab->blocks_.at(slot);
  METS_CHECK(block.bytes != 0) << "slot " << slot;
  --slab->count_[static_cast<int>(block.mobility)];
  --slab->used_;
  used_bytes_ -= block.size;
  slab->Owe(used_on);
  block.bytes = 0;
  block.ready = true;
  ready_[{entry.key.first, entry.key.second, block.size}].push_back(
      {slab, slot});
}

void SlabSet::Join(const Entry& entry, int64_t slot) {
  const auto free = [](const Slab::Block& block) {
    return block.bytes == 0 && !block.ready;
  };
  Slab::Blocks& blocks = entry.slab->blocks_;
  int64_t begin = slot, end = slot + blocks.at(slot).size;
  const auto next = blocks.find(end);
  if (next != blocks.end() && free(next->second)) {
    end += next->second.size;
    RemoveFree(entry, next->first);
  }
  const auto it = blocks.find(slot);
  if (it != blocks.begin() && free(std::prev(it)->second)) {
    begin = std::prev(it)->first;
    RemoveFree(entry, begin);
  }
  blocks.erase(slot);
  AddFree(entry, begin, end - begin);
}

bool SlabSet::JoinReady(const Key& key) {
  std::vector<Room> all;
  for (auto& [kind, rooms] : ready_) {
    const auto& [mobility, stream, size] = kind;
    if (Key(mobility, stream) != key) continue;
    all.insert(all.end(), rooms.begin(), rooms.end());
    rooms.clear();
  }
  for (const Room& room : all) {
    room.slab->blocks_.at(room.offset).ready = false;
    Join(slabs_.at(room.slab), room.offset);
  }
  return !all.empty();
}

Bytes SlabSet::SlabBytes(uint64_t bytes) const {
  const Bytes size =
      std::clamp(Bytes(used_bytes_ / kSlabPart), kSmallestSlab, kLargestSlab);
  return std::max(size, Bytes(static_cast<int64_t>(bytes)))
      .RoundUpTo(granularity_);
}

SlabSet::Room SlabSet::Add(Buffer* buffer, Bytes size, Mobility mobility,
                           Stream stream) {
  auto slab = std::make_unique<Slab>(buffer, size, stream);
  Slab* raw = slab.get();
  const Key key = {mobility, stream.bit};
  const Entry& entry =
      slabs_.emplace(raw, Entry{std::move(slab), key, ++last_number_})
          .first->second;
  AddFree(entry, 0, size.count());
  return {raw, 0};
}

void SlabSet::Remove(Slab* slab) {
  METS_CHECK(slab->empty());
  const auto it = slabs_.find(slab);
  JoinReady(it->second.key);
  RemoveFree(it->second, 0);
  slabs_.erase(it);
}

bool SlabSet::HasOther(Slab* slab) const {
  const auto kind = free_.find(slabs_.at(slab).key);
  return kind != free_.end() &&
         std::any_of(kind->second.begin(), kind->second.end(),
                     [slab](const FreeBlock& block) {
                       return std::get<Slab*>(block) != slab;
                     });
}

}  // namespace mets::client
