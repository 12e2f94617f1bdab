// SwapSpace: finds slots for buffers that leave, and grows where it must.
#ifndef METS_DAEMON_CORE_SWAP_SWAP_SPACE_H_
#define METS_DAEMON_CORE_SWAP_SWAP_SPACE_H_

#include <optional>
#include <vector>

#include "daemon/core/chunks/retirement.h"
#include "daemon/core/state.h"

namespace mets::core {

// A domain's want of swap space.
struct SwapWish {
  DomainId domain;
  Bytes first;  // The least that helps: its best candidate's size.
  Bytes all;    // Of all its candidates.
};

// Where slots come from, in this order: the slot that the buffer still has
// (clean); free space in the domain's extents; a new extent (the caller waits);
// when the limit is reached, clean slots of the domain, least recently used
// first; and extents of other domains that hold nothing but clean slots (and
// are not new), which are destroyed for it.
//
// A domain's extents grow with what it has: as large as all before, at least
// 64 MiB and what is wanted now, at most the configured extent size (creating
// takes time in proportion).
//
// Not thread-safe. Borrows the state and the retirement.
class SwapSpace {
 public:
  SwapSpace(State* state, Retirement* retirement)
      : state_(*state), retirement_(*retirement) {}

  // A slot for a resident buffer, which belongs to an order from now on;
  // nothing when there is no room now. Clean slots are given up for it only
  // with `reclaim`.
  std::optional<SlotId> SlotFor(const Session& session, size_t device,
                                Buffer& buffer, bool reclaim);
  // No larger slot can be had now.
  Bytes Room(DomainId domain, bool reclaim) const;
  // Takes the slot from a buffer that has one.
  void FreeSlot(Buffer& buffer);
  // Adds the slot's extents that the session has not got yet: their descriptors
  // are sent with the order that names the slot.
  void Introduce(const Slot& slot, Session& session,
                 std::vector<ExtentRef>* extents);
  // The same for all that the domain has, which later orders will name: a
  // client prepares them in the background.
  void IntroduceAll(Session& session, std::vector<ExtentRef>* extents);
  // Sees to it that the domain gets room, if there can be. Other domains'
  // extents are taken only with `may_take`; true when that is under way.
  bool Grow(const SwapWish& wish, bool may_take);
  // Grows ahead of need, out of what nobody has, when little room is left.
  void KeepHeadroom(DomainId domain);
  // True when room for the domain is on its way.
  bool Growing(DomainId domain) const;
  void OnExtentCreated(const ExtentCreated& input);

 private:
  // Whether the session has got all that there are.
  bool HasAll(const Session& session) const;
  void Introduce(ExtentId extent, Bytes size, Session& session,
                 std::vector<ExtentRef>* extents);
  bool MayReclaim(DomainId domain) const;
  bool ReclaimClean(DomainId domain, Bytes wanted);
  void ForgetClean(SlotId slot);
  bool TakeFromOthers(const SwapWish& wish, Bytes left);
  void ForgetCleanIn(ExtentId extent);

  State& state_;
  Retirement& retirement_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SWAP_SWAP_SPACE_H_
