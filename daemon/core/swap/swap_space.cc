#include "daemon/core/swap/swap_space.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace mets::core {
namespace {

constexpr Bytes kGranule = KiB(64);
constexpr Bytes kSmallestGrowth = MiB(64);
// A domain has this long to use a new extent before another may take it, so
// that two that need several each do not take them from one another for ever.
constexpr absl::Duration kUndisturbed = absl::Milliseconds(100);
constexpr Bytes kHeadroom = MiB(16);
// Making host memory takes longer than copying to it.
constexpr size_t kMostAtOnce = 4;
constexpr absl::Duration kRetryCreation = absl::Seconds(1);

Bytes RoundDown(Bytes amount) { return kGranule * (amount / kGranule); }

}  // namespace

std::optional<SlotId> SwapSpace::SlotFor(const Session& session, size_t device,
                                         Buffer& buffer, bool reclaim) {
  if (buffer.slot.ok()) {
    state_.swap.SetState(buffer.slot, SlotState::kOrdered);
    return buffer.slot;
  }
  const Bytes size = buffer.size.RoundUpTo(kGranule);
  const SlotOwner owner{session.id, device, buffer.id};
  auto slot = state_.swap.Allocate(session.domain, size, owner);
  if (!slot && reclaim && MayReclaim(session.domain) &&
      ReclaimClean(session.domain, size)) {
    slot = state_.swap.Allocate(session.domain, size, owner);
  }
  if (slot) buffer.slot = *slot;
  return slot;
}

bool SwapSpace::MayReclaim(DomainId domain) const {
  return RoundDown(state_.swap.growable()).is_zero() && !Growing(domain);
}

Bytes SwapSpace::Room(DomainId domain, bool reclaim) const {
  const Bytes free = state_.swap.DomainFree(domain);
  return reclaim && MayReclaim(domain) ? free + state_.swap.CleanBytes(domain)
                                       : free;
}

void SwapSpace::FreeSlot(Buffer& buffer) {
  if (!buffer.slot.ok()) return;
  state_.swap.Free(buffer.slot);
  buffer.slot = SlotId();
}

void SwapSpace::Introduce(const Slot& slot, Session& session,
                          std::vector<ExtentRef>* extents) {
  if (HasAll(session)) return;
  for (const SlotPiece& piece : slot.pieces) {
    Introduce(piece.extent, state_.swap.FindExtent(piece.extent)->space.size(),
              session, extents);
  }
}

void SwapSpace::IntroduceAll(Session& session,
                             std::vector<ExtentRef>* extents) {
  if (HasAll(session)) return;
  session.extents_seen = state_.swap.ready_count();
  for (const auto& [id, extent] : state_.swap.extents()) {
    if (extent.domain != session.domain ||
        extent.state != ExtentState::kReady) {
      continue;
    }
    Introduce(id, extent.space.size(), session, extents);
  }
}

bool SwapSpace::HasAll(const Session& session) const {
  return session.extents_seen == state_.swap.ready_count();
}

void SwapSpace::Introduce(ExtentId extent, Bytes size, Session& session,
                          std::vector<ExtentRef>* extents) {
  if (std::exchange(session.extents[extent], true)) return;
  extents->push_back({extent, size});
}

bool SwapSpace::Growing(DomainId domain) const {
  return state_.swap.Growth(domain).extents > 0;
}

bool SwapSpace::Grow(const SwapWish& wish, bool may_take) {
  if (state_.now < state_.swap_grow_from) return false;
  SwapGrowth growth = state_.swap.Growth(wish.domain);
  const bool grows = growth.extents > 0;
  const Bytes all = wish.all.RoundUpTo(kGranule);
  Bytes left = RoundDown(state_.swap.growable());
  const bool taking =
      !grows && may_take && left < all && TakeFromOthers(wish, left);
  while (growth.bytes < all && growth.extents < kMostAtOnce &&
         !left.is_zero()) {
    Bytes size = std::max({kSmallestGrowth, all - growth.bytes,
                           state_.swap.DomainBytes(wish.domain)});
    size = std::min({size, std::max(kGranule, state_.config.extent_size), left});
    const ExtentId extent = state_.swap.StartCreating(wish.domain, size);
    state_.Send(CreateExtent{extent, wish.domain, size});
    growth.bytes += size;
    ++growth.extents;
    left = RoundDown(state_.swap.growable());
  }
  return grows || taking;
}

void SwapSpace::KeepHeadroom(DomainId domain) {
  if (state_.swap.growable() >= kSmallestGrowth &&
      state_.swap.DomainFree(domain) < kHeadroom) {
    Grow({domain, kSmallestGrowth, kSmallestGrowth}, false);
  }
}

void SwapSpace::OnExtentCreated(const ExtentCreated& input) {
  if (input.status.ok()) {
    state_.swap.Created(input.extent, state_.now);
    state_.swap_error.clear();
  } else {
    state_.swap.CreateFailed(input.extent);
    state_.swap_grow_from = state_.now + kRetryCreation;
    state_.swap_error = std::string(input.status.message());
  }
  for (Device& device : state_.devices) {
    device.search_from = absl::InfinitePast();
    device.stir = true;
  }
}

bool SwapSpace::ReclaimClean(DomainId domain, Bytes wanted) {
  Bytes free = state_.swap.DomainFree(domain);
  if (free + state_.swap.CleanBytes(domain) < wanted) return false;
  while (free < wanted) {
    const SlotId id = state_.swap.Clean(domain).begin()->second;
    free += state_.swap.Find(id)->size;
    ForgetClean(id);
  }
  return true;
}

void SwapSpace::ForgetClean(SlotId slot) {
  const SlotOwner owner = state_.swap.Find(slot)->owner;
  Session* session = state_.sessions.Find(owner.session);
  METS_CHECK(session != nullptr) << "slot " << slot << " without a session";
  Buffer& buffer = *session->holdings[owner.device].buffers.Find(owner.buffer);
  FreeSlot(buffer);
  state_.UpdateVictim(*session, owner.device, buffer);
}

bool SwapSpace::TakeFromOthers(const SwapWish& wish, Bytes left) {
  std::set<ExtentId> needed;
  for (const auto& [id, entry] : state_.swap.slots()) {
    if (entry->state == SlotState::kClean) continue;
    for (const SlotPiece& piece : entry->slot.pieces) {
      needed.insert(piece.extent);
    }
  }
  std::vector<const ExtentEntry*> candidates;
  Bytes coming, possible;
  for (const auto& [id, extent] : state_.swap.extents()) {
    if (extent.state == ExtentState::kDraining ||
        extent.state == ExtentState::kDestroying) {
      coming += extent.space.size();
    } else if (extent.domain != wish.domain &&
               extent.state == ExtentState::kReady && needed.count(id) == 0 &&
               extent.ready_since + kUndisturbed <= state_.now) {
      candidates.push_back(&extent);
      possible += extent.space.size();
    }
  }
  const Bytes own = left + coming + state_.swap.DomainFree(wish.domain);
  if (own + possible < wish.first) return false;
  Bytes taken;
  for (const ExtentEntry* extent : candidates) {
    if (left + coming + taken >= wish.all) break;
    ForgetCleanIn(extent->id);
    if (!retirement_.CanRetire(*extent)) continue;
    taken += extent->space.size();
    retirement_.RetireExtent(extent->id);
  }
  return !coming.is_zero() || !taken.is_zero();
}

void SwapSpace::ForgetCleanIn(ExtentId extent) {
  std::vector<SlotId> slots;
  for (const auto& [id, entry] : state_.swap.slots()) {
    for (const SlotPiece& piece : entry->slot.pieces) {
      if (piece.extent != extent) continue;
      slots.push_back(id);
      break;
    }
  }
  for (SlotId slot : slots) ForgetClean(slot);
}

}  // namespace mets::core
