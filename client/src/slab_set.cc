#include "client/src/slab_set.h"

#include <algorithm>
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

// Of a slab's number, and of a place or a size in it, in units: a million slabs
// of at most 256 MiB.
constexpr int kNumberBits = 20, kPlaceBits = 22;

uint64_t SizeKey(int64_t size) {
  return static_cast<uint64_t>(size) / kUnit << (kNumberBits + kPlaceBits);
}

int64_t Aligned(int64_t offset, uint64_t align) {
  return RoundUp(offset, std::max(align, kUnit));
}

}  // namespace

Slab::Slab(Buffer* buffer, Bytes size, Stream stream, uint64_t number,
           OfKind* alike)
    : buffer_(buffer), size_(size.count()), number_(number), alike_(*alike) {
  debt_.stream = stream;
}

Slab::Block* Slab::Find(const void* address) const {
  const int64_t offset = static_cast<const char*>(address) -
                         buffer_->base.load(std::memory_order_relaxed);
  if (offset < 0 || offset >= size_) return nullptr;
  const auto begins = begin_.find(offset);
  Block* block = begins != begin_.end() ? begins->second : first_;
  while (block->offset + block->size <= offset) block = block->after;
  return block->use == Use::kTaken ? block : nullptr;
}

int64_t Slab::SlotOf(const void* address) const {
  const Block* block = Find(address);
  return block == nullptr ? -1 : block->offset;
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
  Block& block = *begin_.at(slot);
  --count_[static_cast<int>(block.mobility)];
  block.mobility = mobility;
  ++count_[static_cast<int>(mobility)];
}

Mobility Slab::mobility() const {
  if (count_[static_cast<int>(Mobility::kFixed)] > 0) return Mobility::kFixed;
  if (count_[static_cast<int>(Mobility::kHeld)] > 0) return Mobility::kHeld;
  return Mobility::kMovable;
}

uint64_t Slab::KeyOf(const Block* block) const {
  return SizeKey(block->size) | number_ << kPlaceBits | block->offset / kUnit;
}

void Slab::FreeBlocks::Add(uint64_t key, Block* block) {
  if (last_ != nullptr) others_.emplace(last_key_, last_);
  last_key_ = key;
  last_ = block;
}

void Slab::FreeBlocks::Remove(uint64_t key) {
  if (last_ != nullptr && last_key_ == key) {
    last_ = nullptr;
  } else {
    others_.erase(key);
  }
}

template <typename Fits>
Slab::Block* Slab::FreeBlocks::Find(uint64_t key, Fits fits) const {
  const bool last = last_ != nullptr && last_key_ >= key && fits(last_);
  for (auto it = others_.lower_bound(key);
       it != others_.end() && !(last && last_key_ < it->first); ++it) {
    if (fits(it->second)) return it->second;
  }
  return last ? last_ : nullptr;
}

void Slab::AddFree(Block* block) {
  block->use = Use::kFree;
  alike_.free.Add(KeyOf(block), block);
}

void Slab::RemoveFree(Block* block) { alike_.free.Remove(KeyOf(block)); }

Slab::OfKind* SlabSet::FindKind(const Kind& kind) {
  if (recent_kind_ == nullptr || recent_kind_->first != kind) {
    const auto found = kinds_.find(kind);
    if (found == kinds_.end()) return nullptr;
    recent_kind_ = &*found;
  }
  return &recent_kind_->second;
}

SlabSet::Room SlabSet::FindRoom(Mobility mobility, uint64_t bytes,
                                uint64_t align, Stream stream) {
  Slab::OfKind* const alike = FindKind({mobility, stream.bit});
  if (alike == nullptr) return {};
  const int64_t size = BlockBytes(bytes, align);
  Block* const ready = ReadyOf(*alike, size);
  if (ready != nullptr && ready->size == size &&
      Aligned(ready->offset, align) == ready->offset) {
    return {ready->slab, ready};
  }
  const Room room = FindFree(*alike, size, align);
  if (room.found() || !JoinReady(*alike)) return room;
  return FindFree(*alike, size, align);
}

SlabSet::Room SlabSet::FindFree(const Slab::OfKind& alike, int64_t size,
                                uint64_t align) {
  Block* const block =
      alike.free.Find(SizeKey(size), [size, align](const Block* free) {
        return Aligned(free->offset, align) + size <= free->offset + free->size;
      });
  return block == nullptr ? Room() : Room{block->slab, block};
}

SlabSet::Block* SlabSet::Insert(Slab* slab, Block* before, int64_t offset,
                                int64_t size) {
  if (unused_.empty()) unused_.push_back(&blocks_.emplace_back());
  Block* block = unused_.back();
  unused_.pop_back();
  Block* after = before == nullptr ? nullptr : before->after;
  *block = Block();
  block->slab = slab;
  block->offset = offset;
  block->size = size;
  block->before = before;
  block->after = after;
  (before == nullptr ? slab->first_ : before->after) = block;
  if (after != nullptr) after->before = block;
  return block;
}

void SlabSet::Drop(Block* block) {
  if (block->before != nullptr) block->before->after = block->after;
  if (block->after != nullptr) block->after->before = block->before;
  block->slab = nullptr;
  unused_.push_back(block);
}

char* SlabSet::Allocate(const Room& room, uint64_t bytes, uint64_t align,
                        Mobility mobility) {
  Slab* slab = room.slab;
  Block* block = room.block;
  const int64_t size = BlockBytes(bytes, align);
  if (block->use == Use::kReady) {
    RemoveReady(block);
  } else {
    slab->RemoveFree(block);
    const int64_t end = block->offset + block->size;
    const int64_t begin = Aligned(block->offset, align);
    METS_CHECK(begin + size <= end) << "a block of " << block->size;
    if (begin > block->offset) {
      block->size = begin - block->offset;
      slab->AddFree(block);
      block = Insert(slab, block, begin, size);
    }
    block->size = size;
    if (begin + size < end) {
      slab->AddFree(Insert(slab, block, begin + size, end - begin - size));
    }
    slab->begin_[begin] = block;
  }
  block->use = Use::kTaken;
  block->bytes = bytes;
  block->mobility = mobility;
  ++slab->count_[static_cast<int>(mobility)];
  if (slab->used_++ == 0) NoSpare(slab);
  used_bytes_ += size;
  return slab->AddressOf(block->offset);
}

uint64_t SlabSet::Free(Slab* slab, const void* address, StreamMask used_on) {
  Block* block = slab->Find(address);
  if (block == nullptr) return 0;
  --slab->count_[static_cast<int>(block->mobility)];
  --slab->used_;
  used_bytes_ -= block->size;
  slab->Owe(used_on);
  block->use = Use::kReady;
  if (!slab->aside_) AddReady(block);
  return block->bytes;
}

void SlabSet::AddReady(Block* block) {
  Block*& ready = ReadyOf(block->slab->alike_, block->size);
  if (ready != nullptr) Join(ready);
  ready = block;
}

void SlabSet::RemoveReady(Block* block) {
  ReadyOf(block->slab->alike_, block->size) = nullptr;
}

void SlabSet::Join(Block* block) {
  Slab* slab = block->slab;
  slab->begin_.erase(block->offset);
  const auto take = [&](Block* other) {
    slab->RemoveFree(other);
    block->size += other->size;
    Drop(other);
  };
  const auto is_free = [](const Block* other) {
    return other != nullptr && other->use == Use::kFree;
  };
  if (is_free(block->after)) take(block->after);
  if (is_free(block->before)) {
    block->offset = block->before->offset;
    if (block->before == slab->first_) slab->first_ = block;
    take(block->before);
  }
  slab->AddFree(block);
}

bool SlabSet::JoinReady(Slab::OfKind& alike) {
  bool any = false;
  for (Block*& ready : alike.ready) {
    if (ready == nullptr) continue;
    Join(std::exchange(ready, nullptr));
    any = true;
  }
  return any;
}

Bytes SlabSet::SlabBytes(uint64_t bytes) const {
  const Bytes size =
      std::clamp(Bytes(used_bytes_ / kSlabPart), kSmallestSlab, kLargestSlab);
  return std::max(size, Bytes(static_cast<int64_t>(bytes)))
      .RoundUpTo(granularity_);
}

SlabSet::Room SlabSet::Add(Buffer* buffer, Bytes size, Mobility mobility,
                           Stream stream) {
  uint64_t number = slabs_.size();
  if (!numbers_.empty()) {
    number = numbers_.extract(numbers_.begin()).value();
  }
  METS_CHECK(number >> kNumberBits == 0 &&
             size.count() / kUnit >> kPlaceBits == 0)
      << "slab " << number << " of " << size;
  std::unique_ptr<Slab> slab(
      new Slab(buffer, size, stream, number, &kinds_[{mobility, stream.bit}]));
  Slab* raw = slab.get();
  slabs_.emplace(raw, std::move(slab));
  Block* all = Insert(raw, nullptr, 0, size.count());
  raw->AddFree(all);
  return {raw, all};
}

void SlabSet::Remove(Slab* slab) {
  METS_CHECK(slab->empty());
  SetAside(slab);
  for (Block* block = slab->first_; block != nullptr;) {
    Drop(std::exchange(block, block->after));
  }
  numbers_.insert(slab->number_);
  slabs_.erase(slab);
}

void SlabSet::SetAside(Slab* slab) {
  if (std::exchange(slab->aside_, true)) return;
  NoSpare(slab);
  for (Block* block = slab->first_; block != nullptr; block = block->after) {
    if (block->use == Use::kFree) slab->RemoveFree(block);
    if (block->use == Use::kReady) RemoveReady(block);
  }
}

void SlabSet::PutBack(Slab* slab) {
  if (!std::exchange(slab->aside_, false)) return;
  for (Block* block = slab->first_; block != nullptr; block = block->after) {
    if (block->use == Use::kFree) slab->AddFree(block);
    if (block->use == Use::kReady) AddReady(block);
  }
}

bool SlabSet::KeepAsSpare(Slab* slab) {
  METS_CHECK(slab->empty());
  Slab::OfKind& alike = slab->alike_;
  if (slab->aside_ || alike.spare_bytes >= 2 * kLargestSlab) return false;
  alike.spares.push_back(slab);
  alike.spare_bytes += Bytes(slab->size_);
  return true;
}

void SlabSet::NoSpare(Slab* slab) {
  Slab::OfKind& alike = slab->alike_;
  const auto spare = std::find(alike.spares.begin(), alike.spares.end(), slab);
  if (spare == alike.spares.end()) return;
  alike.spares.erase(spare);
  alike.spare_bytes -= Bytes(slab->size_);
}

std::vector<Slab*> SlabSet::Spares() const {
  std::vector<Slab*> spares;
  for (const auto& [kind, alike] : kinds_) {
    spares.insert(spares.end(), alike.spares.begin(), alike.spares.end());
  }
  return spares;
}

}  // namespace mets::client
