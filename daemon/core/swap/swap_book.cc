#include "daemon/core/swap/swap_book.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets::core {
namespace {

constexpr size_t kMostPieces = 64;

}  // namespace

Bytes SwapBook::DomainBytes(DomainId domain) const {
  Bytes sum;
  for (const auto& [id, extent] : extents_) {
    if (extent.domain == domain) sum += extent.space.size();
  }
  return sum;
}

Bytes SwapBook::DomainFree(DomainId domain) const {
  Bytes sum;
  for (const auto& [id, extent] : extents_) {
    if (extent.domain == domain && extent.state == ExtentState::kReady) {
      sum += extent.space.free();
    }
  }
  return sum;
}

SwapGrowth SwapBook::Growth(DomainId domain) const {
  SwapGrowth growth;
  for (const auto& [id, extent] : extents_) {
    if (extent.domain == domain && extent.state == ExtentState::kCreating) {
      ++growth.extents;
      growth.bytes += extent.space.size();
    }
  }
  return growth;
}

ExtentId SwapBook::StartCreating(DomainId domain, Bytes size) {
  METS_CHECK(size > Bytes() && size <= growable())
      << "an extent of " << size << " with " << growable() << " left";
  const ExtentId id = extent_ids_.Next();
  extents_.emplace(id, ExtentEntry{id, domain, ExtentState::kCreating,
                                   ExtentSpace(size), absl::InfiniteFuture()});
  extent_bytes_ += size;
  return id;
}

ExtentEntry& SwapBook::Get(ExtentId id, ExtentState expected) {
  auto it = extents_.find(id);
  METS_CHECK(it != extents_.end()) << "no extent " << id;
  METS_CHECK(it->second.state == expected)
      << "extent " << id << " is in state "
      << static_cast<int>(it->second.state);
  return it->second;
}

void SwapBook::Created(ExtentId id, absl::Time now) {
  ExtentEntry& extent = Get(id, ExtentState::kCreating);
  extent.state = ExtentState::kReady;
  ++ready_count_;
  extent.ready_since = now;
  Note(KeptExtent{id, extent.domain, extent.space.size()});
}

void SwapBook::CreateFailed(ExtentId id) {
  extent_bytes_ -= Get(id, ExtentState::kCreating).space.size();
  extents_.erase(id);
}

void SwapBook::Drain(ExtentId id) {
  ExtentEntry& extent = Get(id, ExtentState::kReady);
  METS_CHECK(extent.space.empty()) << "extent " << id << " has slots";
  extent.state = ExtentState::kDraining;
}

void SwapBook::StartDestroying(ExtentId id) {
  Get(id, ExtentState::kDraining).state = ExtentState::kDestroying;
  Note(Gone<ExtentId>{id});
}

void SwapBook::Destroyed(ExtentId id) {
  extent_bytes_ -= Get(id, ExtentState::kDestroying).space.size();
  extents_.erase(id);
}

void SwapBook::TakeOver(const KeptExtent& kept, absl::Time now) {
  METS_CHECK(kept.size > Bytes() && kept.size <= growable())
      << "an extent of " << kept.size << " with " << growable() << " left";
  const bool added =
      extents_
          .emplace(kept.id,
                   ExtentEntry{kept.id, kept.domain, ExtentState::kReady,
                               ExtentSpace(kept.size), now})
          .second;
  METS_CHECK(added) << "extent " << kept.id << " exists";
  extent_bytes_ += kept.size;
  ++ready_count_;
}

bool SwapBook::TakeOver(const KeptSlot& kept, DomainId domain) {
  SlotEntry entry;
  for (const SlotPiece& piece : kept.slot.pieces) {
    const auto it = extents_.find(piece.extent);
    if (it == extents_.end() || it->second.domain != domain ||
        !it->second.space.TakeAt(piece.offset, piece.size)) {
      GivePieces(entry.slot.pieces);
      return false;
    }
    entry.slot.pieces.push_back(piece);
    entry.size += piece.size;
  }
  entry.slot.id = kept.slot.id;
  entry.domain = domain;
  entry.owner = {kept.session, kept.device, BufferId()};
  Count(entry) += entry.size;
  const bool added =
      slots_
          .emplace(kept.slot.id, std::make_unique<SlotEntry>(std::move(entry)))
          .second;
  METS_CHECK(added) << "slot " << kept.slot.id << " exists";
  return true;
}

void SwapBook::Skip(ExtentId extent, SlotId slot) {
  extent_ids_.Skip(extent);
  slot_ids_.Skip(slot);
}

const ExtentEntry* SwapBook::FindExtent(ExtentId id) const {
  auto it = extents_.find(id);
  return it == extents_.end() ? nullptr : &it->second;
}

std::optional<SlotId> SwapBook::Allocate(DomainId domain, Bytes size,
                                         const SlotOwner& owner) {
  SlotEntry entry;
  if (!TakePieces(domain, size, &entry.slot.pieces)) return std::nullopt;
  const SlotId id = slot_ids_.Next();
  entry.slot.id = id;
  entry.size = size;
  entry.domain = domain;
  entry.owner = owner;
  Count(entry) += size;
  Note(KeptSlot{entry.slot, owner.session, owner.device});
  slots_.emplace_hint(slots_.end(), id,
                      std::make_unique<SlotEntry>(std::move(entry)));
  return id;
}

bool SwapBook::TakePieces(DomainId domain, Bytes size, Pieces* pieces) {
  const auto usable = [&](const ExtentEntry& extent) {
    return extent.domain == domain && extent.state == ExtentState::kReady &&
           !extent.space.free().is_zero();
  };
  const auto take_whole = [&](ExtentEntry& extent) {
    if (!usable(extent)) return false;
    const auto offset = extent.space.TakeWhole(size);
    if (offset) pieces->push_back({extent.id, *offset, size});
    return offset.has_value();
  };
  ExtentId& last = last_[domain];
  const auto it = extents_.find(last);
  if (it != extents_.end() && take_whole(it->second)) return true;
  for (auto& [id, extent] : extents_) {
    if (id == last || !take_whole(extent)) continue;
    last = id;
    return true;
  }
  if (DomainFree(domain) < size) return false;
  Bytes left = size;
  for (auto& [id, extent] : extents_) {
    while (!left.is_zero() && usable(extent) && pieces->size() < kMostPieces) {
      const ExtentSpace::Part part = extent.space.TakePart(left);
      pieces->push_back({id, part.offset, part.size});
      left -= part.size;
    }
  }
  if (left.is_zero()) return true;
  GivePieces(*pieces);
  pieces->clear();
  return false;
}

void SwapBook::GivePieces(const Pieces& pieces) {
  for (const SlotPiece& piece : pieces) {
    extents_.at(piece.extent).space.Give(piece.offset, piece.size);
  }
}

Bytes& SwapBook::Count(const SlotEntry& entry) {
  const size_t device = entry.owner.device;
  if (bytes_.size() <= device) bytes_.resize(device + 1);
  return bytes_[device][static_cast<size_t>(entry.state)];
}

SlotEntry& SwapBook::GetSlot(SlotId id) {
  auto it = slots_.find(id);
  METS_CHECK(it != slots_.end()) << "no slot " << id;
  return *it->second;
}

void SwapBook::Free(SlotId id) {
  const SlotEntry& entry = GetSlot(id);
  ForgetClean(entry);
  Count(entry) -= entry.size;
  GivePieces(entry.slot.pieces);
  slots_.erase(id);
  Note(Gone<SlotId>{id});
}

void SwapBook::SetBuffer(SlotId id, BufferId buffer) {
  GetSlot(id).owner.buffer = buffer;
}

void SwapBook::SetState(SlotId id, SlotState state) {
  METS_CHECK(state != SlotState::kClean) << "slot " << id << " without a time";
  SlotEntry& entry = GetSlot(id);
  ForgetClean(entry);
  Count(entry) -= entry.size;
  entry.state = state;
  Count(entry) += entry.size;
}

void SwapBook::SetClean(SlotId id, absl::Time last_use) {
  SetState(id, SlotState::kOrdered);
  SlotEntry& entry = GetSlot(id);
  Count(entry) -= entry.size;
  entry.state = SlotState::kClean;
  Count(entry) += entry.size;
  DomainClean& clean = clean_[entry.domain];
  entry.clean = clean.slots.emplace(last_use, id).first;
  clean.bytes += entry.size;
}

void SwapBook::ForgetClean(const SlotEntry& entry) {
  if (entry.state != SlotState::kClean) return;
  auto it = clean_.find(entry.domain);
  it->second.slots.erase(entry.clean);
  it->second.bytes -= entry.size;
  if (it->second.slots.empty()) clean_.erase(it);
}

const CleanSlots& SwapBook::Clean(DomainId domain) const {
  static const auto& none = *new CleanSlots();
  auto it = clean_.find(domain);
  return it == clean_.end() ? none : it->second.slots;
}

Bytes SwapBook::CleanBytes(DomainId domain) const {
  auto it = clean_.find(domain);
  return it == clean_.end() ? Bytes() : it->second.bytes;
}

const SlotEntry* SwapBook::Find(SlotId id) const {
  auto it = slots_.find(id);
  return it == slots_.end() ? nullptr : it->second.get();
}

Bytes SwapBook::bytes(size_t device, SlotState state) const {
  return device < bytes_.size() ? bytes_[device][static_cast<size_t>(state)]
                                : Bytes();
}

absl::Status SwapBook::Check() const {
  std::map<ExtentId, Bytes> used;
  std::vector<std::array<Bytes, kSlotStates>> sums(bytes_.size());
  for (const auto& [id, slot] : slots_) {
    const SlotEntry& entry = *slot;
    Bytes sum;
    for (const SlotPiece& piece : entry.slot.pieces) {
      sum += piece.size;
      used[piece.extent] += piece.size;
      const ExtentEntry* extent = FindExtent(piece.extent);
      if (extent == nullptr || extent->domain != entry.domain ||
          extent->state != ExtentState::kReady) {
        return absl::InternalError(
            absl::StrCat("slot ", id.value(), " lies in a wrong extent"));
      }
    }
    sums[entry.owner.device][static_cast<size_t>(entry.state)] += entry.size;
    if (sum != entry.size) {
      return absl::InternalError(absl::StrCat(
          "slot ", id.value(), " has pieces of ", sum.count(), " bytes"));
    }
  }
  Bytes total;
  for (const auto& [id, extent] : extents_) {
    total += extent.space.size();
    if (extent.space.free() + used[id] != extent.space.size()) {
      return absl::InternalError(absl::StrCat(
          "extent ", id.value(), ": ", extent.space.free().count(), " free + ",
          used[id].count(), " used != ", extent.space.size().count()));
    }
  }
  if (total != extent_bytes_ || total > limit_) {
    return absl::InternalError(absl::StrCat("extents of ", total.count(),
                                            " bytes, limit ", limit_.count()));
  }
  if (sums != bytes_) {
    return absl::InternalError("slots have other sizes than the book says");
  }
  return CheckClean();
}

absl::Status SwapBook::CheckClean() const {
  size_t clean = 0;
  std::map<DomainId, Bytes> sums;
  for (const auto& [id, slot] : slots_) {
    const SlotEntry& entry = *slot;
    if (entry.state != SlotState::kClean) continue;
    ++clean;
    sums[entry.domain] += entry.size;
    const CleanSlots& listed = Clean(entry.domain);
    const auto it = listed.find(*entry.clean);
    if (it == listed.end() || it->second != id) {
      return absl::InternalError(
          absl::StrCat("slot ", id.value(), " is clean and not listed"));
    }
  }
  for (const auto& [domain, of_domain] : clean_) {
    clean -= of_domain.slots.size();
    if (of_domain.bytes == sums[domain]) continue;
    return absl::InternalError(absl::StrCat(
        "clean slots of domain ", domain.value(), " have ",
        sums[domain].count(), " bytes, not ", of_domain.bytes.count()));
  }
  if (clean != 0) return absl::InternalError("slots are listed as clean");
  return absl::OkStatus();
}

}  // namespace mets::core
