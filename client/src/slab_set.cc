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

Slab::FreeBlock Slab::AsFree(Block* block) const {
  return {block->size, number_ << 32 | block->offset / kUnit, block};
}

void Slab::AddFree(Block* block) {
  block->use = Use::kFree;
  free_.insert(AsFree(block));
}

void Slab::RemoveFree(Block* block) { free_.erase(AsFree(block)); }

void Slab::AddReady(Block* block) {
  block->place = block->alike->size();
  block->alike->push_back(block);
}

void Slab::RemoveReady(Block* block) {
  Block* const last = block->alike->back();
  block->alike->pop_back();
  if (last != block) (*block->alike)[last->place = block->place] = last;
}

SlabSet::Room SlabSet::FindRoom(Mobility mobility, uint64_t bytes,
                                uint64_t align, Stream stream) {
  const int64_t size = BlockBytes(bytes, align);
  const Kind kind = {mobility, stream.bit};
  const auto ready = ready_.find(KeyOf(kind, size));
  if (ready != ready_.end() && !ready->second.empty()) {
    Block* block = ready->second.back();
    if (Aligned(block->offset, align) == block->offset) {
      return {block->slab, block};
    }
  }
  const Room room = FindFree(kind, size, align);
  if (room.found() || !JoinReady(kind)) return room;
  return FindFree(kind, size, align);
}

SlabSet::Room SlabSet::FindFree(const Kind& kind, int64_t size,
                                uint64_t align) const {
  const auto free = free_.find(kind);
  if (free == free_.end()) return {};
  for (auto it = free->second.lower_bound({size}); it != free->second.end();
       ++it) {
    Block* block = it->block;
    const int64_t end = block->offset + block->size;
    if (Aligned(block->offset, align) + size <= end) {
      return {block->slab, block};
    }
  }
  return {};
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
    block->alike->pop_back();
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
    block->alike = &ready_[KeyOf(slab->kind_, size)];
  }
  block->use = Use::kTaken;
  block->bytes = bytes;
  block->mobility = mobility;
  ++slab->count_[static_cast<int>(mobility)];
  ++slab->used_;
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
  if (!slab->aside_) Slab::AddReady(block);
  return block->bytes;
}

void SlabSet::Join(Block* block) {
  Slab* slab = block->slab;
  const auto take = [&](Block* other) {
    if (other->use == Use::kFree) slab->RemoveFree(other);
    block->size += other->size;
    Drop(other);
  };
  const auto is_free = [](const Block* other) {
    return other != nullptr && other->use < Use::kReady;
  };
  while (is_free(block->after)) take(block->after);
  while (is_free(block->before)) {
    block->offset = block->before->offset;
    if (block->before == slab->first_) slab->first_ = block;
    take(block->before);
  }
  slab->AddFree(block);
}

bool SlabSet::JoinReady(const Kind& kind) {
  std::vector<Block*> all;
  for (auto& [key, ready] : ready_) {
    const auto& [mobility, stream, size] = key;
    if (Kind(mobility, stream) != kind) continue;
    for (Block* block : ready) {
      block->use = Use::kLoose;
      block->slab->begin_.erase(block->offset);
      all.push_back(block);
    }
    ready.clear();
  }
  for (Block* block : all) {
    // Otherwise it has become part of another.
    if (block->slab != nullptr && block->use == Use::kLoose) Join(block);
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
  std::unique_ptr<Slab> slab(new Slab(buffer, size, mobility, stream,
                                      ++last_number_,
                                      &free_[{mobility, stream.bit}]));
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
  slabs_.erase(slab);
}

void SlabSet::SetAside(Slab* slab) {
  if (std::exchange(slab->aside_, true)) return;
  for (Block* block = slab->first_; block != nullptr; block = block->after) {
    if (block->use == Use::kFree) slab->RemoveFree(block);
    if (block->use == Use::kReady) Slab::RemoveReady(block);
  }
}

void SlabSet::PutBack(Slab* slab) {
  if (!std::exchange(slab->aside_, false)) return;
  for (Block* block = slab->first_; block != nullptr; block = block->after) {
    if (block->use == Use::kFree) slab->AddFree(block);
    if (block->use == Use::kReady) Slab::AddReady(block);
  }
}

bool SlabSet::HasOther(Slab* slab) const {
  const auto free = free_.find(slab->kind_);
  return free != free_.end() &&
         std::any_of(
             free->second.begin(), free->second.end(),
             [slab](const auto& block) { return block.block->slab != slab; });
}

}  // namespace mets::client
