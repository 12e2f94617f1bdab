// SwapBook: extents, and the slots in them.
#ifndef METS_DAEMON_CORE_SWAP_SWAP_BOOK_H_
#define METS_DAEMON_CORE_SWAP_SWAP_BOOK_H_

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/id_counter.h"
#include "daemon/core/kept/change.h"
#include "daemon/core/swap/extent_space.h"
#include "daemon/core/types.h"

namespace mets::core {

enum class SlotState {
  kOrdered,  // An order's: its client may be writing.
  kFull,     // Holds the bytes of a swapped buffer.
  kClean,    // Holds the bytes of a resident buffer as well.
};
inline constexpr size_t kSlotStates = 3;

// Slots and when their buffers were last used.
using CleanSlots = std::set<std::pair<absl::Time, SlotId>>;

// Whose slot it is.
struct SlotOwner {
  SessionId session;
  size_t device = 0;
  BufferId buffer;
};

struct SlotEntry {
  Slot slot;
  Bytes size;
  DomainId domain;
  SlotOwner owner;
  SlotState state = SlotState::kOrdered;
  CleanSlots::iterator clean;  // kClean: its place among its domain's.
};

enum class ExtentState { kCreating, kReady, kDraining, kDestroying };

struct ExtentEntry {
  ExtentId id;
  DomainId domain;
  ExtentState state = ExtentState::kCreating;
  ExtentSpace space;
  absl::Time ready_since = absl::InfiniteFuture();
};

// Extents of a domain that are being created.
struct SwapGrowth {
  size_t extents = 0;
  Bytes bytes;
};

// The swap space: the sum of all extents never exceeds the limit. An extent is
// one domain's for its life; a slot lies in extents of its domain, in up to
// 64 pieces.
//
// Not thread-safe. Wrong transitions are METS_CHECKs.
class SwapBook {
 public:
  // `changes`, if there is one, is told of extents and slots.
  explicit SwapBook(Bytes limit, ChangeLog* changes = nullptr)
      : limit_(limit), changes_(changes) {}

  Bytes limit() const { return limit_; }
  // What further extents may have.
  Bytes growable() const { return limit_ - extent_bytes_; }
  // Bytes in all extents of a domain, and those not in slots.
  Bytes DomainBytes(DomainId domain) const;
  Bytes DomainFree(DomainId domain) const;
  SwapGrowth Growth(DomainId domain) const;

  // --- extents -------------------------------------------------------------
  // REQUIRES: size <= growable().
  ExtentId StartCreating(DomainId domain, Bytes size);
  void Created(ExtentId id, absl::Time now);
  void CreateFailed(ExtentId id);
  // An empty extent takes no more slots. REQUIRES: it is ready and empty.
  void Drain(ExtentId id);
  void StartDestroying(ExtentId id);
  void Destroyed(ExtentId id);
  // Null when there is no such extent.
  const ExtentEntry* FindExtent(ExtentId id) const;
  const std::map<ExtentId, ExtentEntry>& extents() const { return extents_; }
  // How many have become ready so far.
  uint64_t ready_count() const { return ready_count_; }

  // --- what a predecessor had ------------------------------------------------
  // REQUIRES: size <= growable(); no other extent has the id.
  void TakeOver(const KeptExtent& kept, absl::Time now);
  // The slot is in state kOrdered, and no buffer's. False, and nothing changes,
  // when it does not lie in extents of its domain, on bytes that are free.
  bool TakeOver(const KeptSlot& kept, DomainId domain);
  // Identifiers go on behind these.
  void Skip(ExtentId extent, SlotId slot);
  ExtentId last_extent() const { return extent_ids_.last(); }
  SlotId last_slot() const { return slot_ids_.last(); }

  // --- slots ---------------------------------------------------------------
  // A slot of `size` bytes in state kOrdered; nothing when the domain's extents
  // have no room for it.
  std::optional<SlotId> Allocate(DomainId domain, Bytes size,
                                 const SlotOwner& owner);
  void Free(SlotId id);
  // The slot is another buffer's of its session and device, or none's.
  void SetBuffer(SlotId id, BufferId buffer);
  // To kOrdered or kFull.
  void SetState(SlotId id, SlotState state);
  // To kClean; its buffer was last used then.
  void SetClean(SlotId id, absl::Time last_use);
  // Clean slots of a domain, least recently used first, and their sizes' sum.
  const CleanSlots& Clean(DomainId domain) const;
  Bytes CleanBytes(DomainId domain) const;
  // Null when there is no such slot. Valid until it is freed.
  const SlotEntry* Find(SlotId id) const;
  // Ascending by id. A hash table would be found in faster, but a decision
  // that makes it grow would take as long as a thousand others.
  using Slots = absl::btree_map<SlotId, std::unique_ptr<SlotEntry>>;
  const Slots& slots() const { return slots_; }

  // Bytes of a device's slots in a state.
  Bytes bytes(size_t device, SlotState state) const;

  // OK, or INTERNAL with what does not add up.
  absl::Status Check() const;

 private:
  using Pieces = decltype(Slot::pieces);
  template <typename T>
  void Note(T change) {
    if (changes_ != nullptr) changes_->Add(std::move(change));
  }
  bool TakePieces(DomainId domain, Bytes size, Pieces* pieces);
  void GivePieces(const Pieces& pieces);
  ExtentEntry& Get(ExtentId id, ExtentState expected);
  Bytes& Count(const SlotEntry& entry);
  SlotEntry& GetSlot(SlotId id);
  void ForgetClean(const SlotEntry& entry);
  absl::Status CheckClean() const;

  const Bytes limit_;
  ChangeLog* const changes_;
  Bytes extent_bytes_;
  IdCounter<ExtentId> extent_ids_;
  IdCounter<SlotId> slot_ids_;
  std::map<ExtentId, ExtentEntry> extents_;
  uint64_t ready_count_ = 0;
  Slots slots_;
  std::vector<std::array<Bytes, kSlotStates>> bytes_;  // By device.
  struct DomainClean {
    CleanSlots slots;
    Bytes bytes;
  };
  std::map<DomainId, DomainClean> clean_;  // None is empty.
  // Where the last slot of a domain was found: mostly the next one is there.
  std::map<DomainId, ExtentId> last_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SWAP_SWAP_BOOK_H_
