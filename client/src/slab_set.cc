#include "client/src/slab_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

Slab::Slab(Buffer* buffer, Bytes size, Mobility mobility, Stream stream,
           uint64_t number, FreeBlocks* free)
    : buffer_(buffer),
      size_(size.count()),
      kind_(mobility, stream.bit),
      number_(number),
      free_(*free) {
  debt_.stream = stream;
  blocks_[0] = {size_, 0, Mobility::kMovable, false};
  AddFree(0, size_);
}

Slab::Blocks::iterator Slab::Find(const void* address) {
  const int64_t offset = static_cast<const char*>(address) -
                         buffer_->base.load(std::memory_order_relaxed);
  if (offset < 0 || offset >= size_) return blocks_.end();
  const auto it = std::prev(blocks_.upper_bound(offset));
  return it->second.bytes == 0 ? blocks_.end() : it;
}

int64_t Slab::SlotOf(const void* address) {
  const auto it = Find(address);
  return it == blocks_.end() ? -1 : it->first;
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

void Slab::AddFree(int64_t offset, int64_t size) {
  free_.insert({size, number_, this, offset});
}

void Slab::RemoveFree(int64_t offset, int64_t size) {
  free_.erase({size, number_, this, offset});
}

SlabSet::Room SlabSet::FindRoom(Mobility mobility, uint64_t bytes,
                                uint64_t align, Stream stream) {
  const int64_t size = BlockBytes(bytes, align);
  const Kind kind = {mobility, stream.bit};
  const auto ready = ready_.find(KeyOf(kind, size));
  if (ready != ready_.end() && !ready->second.empty()) {
    const Room room = ready->second.back();
    if (Aligned(room.offset, align) == room.offset) return room;
  }
  const Room room = FindFree(kind, size, align);
  if (room.found() || !JoinReady(kind)) return room;
  return FindFree(kind, size, align);
}

SlabSet::Room SlabSet::FindFree(const Kind& kind, int64_t size,
                                uint64_t align) const {
  const auto free = free_.find(kind);
  if (free == free_.end()) return {};
  for (auto it = free->second.lower_bound({size, 0, nullptr, 0});
       it != free->second.end(); ++it) {
    const auto& [has, number, slab, offset] = *it;
    if (Aligned(offset, align) + size <= offset + has) return {slab, offset};
  }
  return {};
}

char* SlabSet::Allocate(const Room& room, uint64_t bytes, uint64_t align,
                        Mobility mobility) {
  Slab* slab = room.slab;
  const auto found = slab->blocks_.find(room.offset);
  METS_CHECK(found != slab->blocks_.end()) << "slot " << room.offset;
  const int64_t end = room.offset + found->second.size;
  const int64_t begin = Aligned(room.offset, align);
  const int64_t size = BlockBytes(bytes, align);
  METS_CHECK(begin + size <= end) << "a block of " << found->second.size;
  if (found->second.ready) {
    ready_[KeyOf(slab->kind_, size)].pop_back();
    found->second = {size, bytes, mobility, false};
  } else {
    slab->RemoveFree(room.offset, found->second.size);
    if (begin > room.offset) {
      found->second.size = begin - room.offset;
      slab->AddFree(room.offset, begin - room.offset);
      slab->blocks_[begin] = {size, bytes, mobility, false};
    } else {
      found->second = {size, bytes, mobility, false};
    }
    if (begin + size < end) {
      slab->blocks_[begin + size] = {end - begin - size, 0, Mobility::kMovable,
                                     false};
      slab->AddFree(begin + size, end - begin - size);
    }
  }
  ++slab->count_[static_cast<int>(mobility)];
  ++slab->used_;
  used_bytes_ += size;
  return slab->AddressOf(begin);
}

uint64_t SlabSet::Free(Slab* slab, const void* address, StreamMask used_on) {
  const auto it = slab->Find(address);
  if (it == slab->blocks_.end()) return 0;
  Slab::Block& block = it->second;
  --slab->count_[static_cast<int>(block.mobility)];
  --slab->used_;
  used_bytes_ -= block.size;
  slab->Owe(used_on);
  block.ready = true;
  ready_[KeyOf(slab->kind_, block.size)].push_back({slab, it->first});
  return std::exchange(block.bytes, 0);
}

void SlabSet::Join(Slab* slab, int64_t offset) {
  const auto free = [](const Slab::Block& block) {
    return block.bytes == 0 && !block.ready;
  };
  Slab::Blocks& blocks = slab->blocks_;
  auto it = blocks.find(offset);
  it->second.ready = false;
  auto next = std::next(it);
  if (next != blocks.end() && free(next->second)) {
    slab->RemoveFree(next->first, next->second.size);
    it->second.size += next->second.size;
    it = std::prev(blocks.erase(next));
  }
  if (it != blocks.begin() && free(std::prev(it)->second)) {
    const int64_t size = it->second.size;
    it = std::prev(blocks.erase(it));
    slab->RemoveFree(it->first, it->second.size);
    it->second.size += size;
  }
  slab->AddFree(it->first, it->second.size);
}

bool SlabSet::JoinReady(const Kind& kind) {
  std::vector<Room> all;
  for (auto& [key, rooms] : ready_) {
    const auto& [mobility, stream, size] = key;
    if (Kind(mobility, stream) != kind) continue;
    all.insert(all.end(), rooms.begin(), rooms.end());
    rooms.clear();
  }
  for (const Room& room : all) Join(room.slab, room.offset);
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
  std::unique_ptr<Slab> slab(new Slab(buffer, size, mobility, stream,
                                      ++last_number_,
                                      &free_[{mobility, stream.bit}]));
  Slab* raw = slab.get();
  slabs_.emplace(raw, std::move(slab));
  return {raw, 0};
}

void SlabSet::Remove(Slab* slab) {
  METS_CHECK(slab->empty());
  JoinReady(slab->kind_);
  slab->RemoveFree(0, slab->size_);
  slabs_.erase(slab);
}

bool SlabSet::HasOther(Slab* slab) const {
  const auto free = free_.find(slab->kind_);
  return free != free_.end() &&
         std::any_of(free->second.begin(), free->second.end(),
                     [slab](const auto& block) {
                       return std::get<Slab*>(block) != slab;
                     });
}

}  // namespace mets::client
