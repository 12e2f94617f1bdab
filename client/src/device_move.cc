// Device: eviction, restores and faults. Invariants:
//  * evictions run one at a time (evicting_, held over the copy; an eviction
//    waits for nobody), so a buffer that left kEvicting does not come back to
//    it before the evictor has looked;
//  * `chunks` is empty exactly in kSwapped and kRestoring;
//  * a slot is read only in kRestoring, and written only in kEvicting;
//  * a slot is of at most one buffer (slot_owners_), also when the daemon has
//    not heard of it yet: who else is to be evicted to it takes it away from
//    that one, which is dirty then, or stays when that one's bytes lie there.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/admission.h"
#include "client/src/device.h"
#include "client/src/log.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

Bytes TotalSize(const std::vector<ExtentPiece>& pieces) {
  Bytes total;
  for (const ExtentPiece& piece : pieces) total += piece.size;
  return total;
}

Device::EvictResult Skipped() {
  return {v1::BUFFER_OUTCOME_SKIPPED, false, Bytes()};
}

}  // namespace

void Device::Signal() {
  absl::MutexLock lock(&mutex_);
  changed_.SignalAll();
}

void Device::WaitWhileOwned(Buffer* buffer) {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    switch (buffer->word.phase()) {
      case Phase::kBlocking:
      case Phase::kResuming:
      case Phase::kUnmapping:
      case Phase::kRestoring:
        changed_.Wait(&mutex_);
        break;
      default:
        return;
    }
  }
}

Device::PinResult Device::PinOrWait(Buffer* buffer) {
  for (;;) {
    if (TryPin(buffer)) return PinResult::kPinned;
    if (buffer->word.freed()) return PinResult::kGone;
    if (buffer->word.TryMove(Phase::kEvicting, Phase::kResuming)) {
      Resume(buffer);
      continue;
    }
    WaitWhileOwned(buffer);
    const Phase phase = buffer->word.phase();
    if (phase == Phase::kSwapped) return PinResult::kSwapped;
    if (phase == Phase::kFree) return PinResult::kGone;
  }
}

void Device::Resume(Buffer* buffer) {
  METS_CHECK_OK(driver_->AllowAccess(
      buffer->base.load(std::memory_order_relaxed), HandlesOf(buffer->chunks)));
  METS_CHECK(buffer->word.TryMove(Phase::kResuming, Phase::kResident));
  Signal();
  TryDispose(buffer);
}

absl::StatusOr<SwapSlot> Device::ResolveSlot(const v1::Slot& slot, Bytes size) {
  SwapSlot resolved;
  resolved.id = slot.slot_id();
  resolved.epoch = uplink_.epoch();
  Bytes total;
  for (const v1::SlotPiece& piece : slot.pieces()) {
    const ExtentHandle extent = extents_.Find(piece.extent_id());
    if (extent == ExtentHandle::kNone) {
      return absl::NotFoundError(
          absl::StrCat("extent ", piece.extent_id(), " never came"));
    }
    const Bytes part =
        std::min(Bytes(static_cast<int64_t>(piece.size_bytes())), size - total);
    if (part <= Bytes()) break;
    resolved.pieces.push_back(
        {extent, Bytes(static_cast<int64_t>(piece.offset_bytes())), part});
    total += part;
  }
  if (total < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", resolved.id, " has ", FormatBytes(total),
                     " for a buffer of ", FormatBytes(size)));
  }
  return resolved;
}

bool Device::TakeSlot(Buffer* buffer, uint64_t slot_id) {
  const auto it = slot_owners_.find(slot_id);
  if (it == slot_owners_.end()) return buffer->word.TryStartEviction();
  Buffer* owner = buffers_.Find(it->second);
  if (owner != nullptr && owner != buffer && !IsResident(owner->word.phase())) {
    return false;
  }
  if (!buffer->word.TryStartEviction()) return false;
  if (owner == buffer) return true;
  // Not in the evictor's hands, because this is the evictor.
  if (owner != nullptr) {
    owner->MarkDirty();
    owner->slot = SwapSlot();
  }
  slot_owners_.erase(it);
  return true;
}

void Device::SetSlot(Buffer* buffer, SwapSlot slot) {
  const uint64_t id = BufferPool::IdOf(*buffer);
  if (buffer->slot.id != 0) {
    const auto it = slot_owners_.find(buffer->slot.id);
    if (it != slot_owners_.end() && it->second == id) slot_owners_.erase(it);
  }
  if (slot.id != 0) slot_owners_[slot.id] = id;
  buffer->slot = std::move(slot);
}

Device::EvictResult Device::Evict(uint64_t buffer_id, const v1::Slot& slot,
                                  uint64_t order_id) {
  absl::MutexLock lock(&evicting_);
  return MoveOut(buffer_id, slot, order_id);
}

Device::EvictResult Device::MoveOut(uint64_t buffer_id, const v1::Slot& slot,
                                    std::optional<uint64_t> order_id) {
  Buffer* buffer;
  SwapSlot target;
  bool clean;
  {
    absl::MutexLock lock(&mutex_);
    buffer = buffers_.Find(buffer_id);
    if (buffer == nullptr || buffer->word.freed()) {
      return {v1::BUFFER_OUTCOME_FREED, false, Bytes()};
    }
    if (buffer->mobility != Mobility::kMovable) return Skipped();
    // Its range, when it was taken from the cache, may be larger.
    absl::StatusOr<SwapSlot> resolved =
        ResolveSlot(slot, Bytes(static_cast<int64_t>(buffer->bytes)));
    if (!resolved.ok()) {
      Log(LogLevel::kWarning, resolved.status().message());
      return {v1::BUFFER_OUTCOME_FAILED, false, Bytes()};
    }
    target = *std::move(resolved);
    if (!TakeSlot(buffer, target.id)) return Skipped();
    clean = !buffer->dirty.load(std::memory_order_relaxed) &&
            buffer->slot.id == target.id && buffer->slot.epoch == target.epoch;
  }
  char* base = buffer->base.load(std::memory_order_relaxed);
  const std::vector<ChunkHandle> handles = HandlesOf(buffer->chunks);
  absl::Status status = driver_->BlockAccess(base, handles);
  METS_CHECK(buffer->word.TryMove(
      Phase::kBlocking, status.ok() ? Phase::kEvicting : Phase::kResuming));
  Signal();
  if (status.ok() && !clean) {
    absl::StatusOr<Fence> fence = driver_->CopyOut(
        base, handles, target.pieces, TotalSize(target.pieces), mover_);
    status = fence.ok() ? driver_->Wait(*fence) : fence.status();
    if (!status.ok() &&
        !buffer->word.TryMove(Phase::kEvicting, Phase::kResuming)) {
      return Skipped();
    }
  }
  if (!status.ok()) {
    Log(LogLevel::kWarning,
        absl::StrCat("a buffer could not be moved: ", status.message()));
    Resume(buffer);
    return {v1::BUFFER_OUTCOME_FAILED, false, Bytes()};
  }
  return CommitEviction(buffer, std::move(target), clean, order_id);
}

Device::EvictResult Device::CommitEviction(Buffer* buffer, SwapSlot slot,
                                           bool clean,
                                           std::optional<uint64_t> order_id) {
  if (buffer->word.freed() &&
      buffer->word.TryMove(Phase::kEvicting, Phase::kResuming)) {
    Resume(buffer);
    return {v1::BUFFER_OUTCOME_FREED, false, Bytes()};
  }
  if (!buffer->word.TryMove(Phase::kEvicting, Phase::kUnmapping)) {
    return Skipped();  // An op has brought it back.
  }
  const Bytes size = buffer->range_size();
  const Bytes copied = clean ? Bytes() : TotalSize(slot.pieces);
  METS_CHECK_OK(driver_->Unmap(buffer->base.load(std::memory_order_relaxed),
                               HandlesOf(buffer->chunks)));
  ChunkSet chunks;
  {
    absl::MutexLock lock(&mutex_);
    chunks = std::exchange(buffer->chunks, {});
    SetSlot(buffer, std::move(slot));
    buffer->in_order |= order_id.has_value();
    buffer_bytes_ -= size;
    swapped_bytes_ += size;
    if (!order_id.has_value()) PutIdle(std::exchange(chunks, {}));
    METS_CHECK(buffer->word.TryMove(Phase::kUnmapping, Phase::kSwapped));
    changed_.SignalAll();
  }
  if (order_id.has_value()) GiveBack(chunks, *order_id);
  totals_.evictions.fetch_add(1, std::memory_order_relaxed);
  totals_.clean_evictions.fetch_add(clean, std::memory_order_relaxed);
  totals_.evicted_bytes.fetch_add(copied.count(), std::memory_order_relaxed);
  TryDispose(buffer);
  return {v1::BUFFER_OUTCOME_DONE, clean, size};
}

bool Device::Unwanted(uint64_t buffer_id) {
  absl::MutexLock lock(&mutex_);
  Buffer* buffer = buffers_.Find(buffer_id);
  return buffer == nullptr || buffer->wanted.load() == 0;
}

absl::Status Device::Restore(Buffer* buffer, const ChunkSet& chunks) {
  char* base = buffer->base.load(std::memory_order_relaxed);
  const Bytes size = buffer->range_size();
  const Bytes copied = TotalSize(buffer->slot.pieces);
  absl::StatusOr<Fence> fence =
      driver_->CopyIn(base, HandlesOf(chunks), buffer->slot.pieces, copied,
                      StreamHandle::kHostOrder);
  const absl::Status status =
      fence.ok() ? driver_->Wait(*fence) : fence.status();
  std::vector<ExtentHandle> unused;
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      buffer->chunks = chunks;
      buffer->Touch(CoarseNowMs());  // It is about to be used.
      swapped_bytes_ -= size;
      buffer_bytes_ += size;
      peak_buffer_bytes_ = std::max(peak_buffer_bytes_, buffer_bytes_);
      const bool orphan = buffer->slot.epoch != uplink_.epoch();
      if (orphan) unused = DropSlot(buffer);
      buffer->dirty.store(orphan, std::memory_order_relaxed);
    }
    METS_CHECK(buffer->word.TryMove(
        Phase::kRestoring, status.ok() ? Phase::kResident : Phase::kSwapped,
        status.ok() ? 1 : 0));
    changed_.SignalAll();
    plan_runner_.SomethingChanged();
  }
  for (ExtentHandle extent : unused) driver_->ForgetExtent(extent);
  if (!status.ok()) {
    TryDispose(buffer);
    return absl::InternalError(
        absl::StrCat("a buffer could not be brought back: ", status.message()));
  }
  totals_.restores.fetch_add(1, std::memory_order_relaxed);
  totals_.restored_bytes.fetch_add(copied.count(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Device::SetMobility(void* address, Mobility mobility) {
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->word.freed() ||
      buffer->word.phase() == Phase::kFree) {
    return absl::InvalidArgumentError("the address is in no live buffer");
  }
  Mobility old;
  const auto set = [&](Mobility value) {
    absl::MutexLock lock(&mutex_);
    Slab* slab = buffer->slab.load(std::memory_order_relaxed);
    const int slot = slab == nullptr ? -1 : slab->SlotOf(address);
    old = slot >= 0 ? slab->MobilityOf(slot) : buffer->mobility;
    if (slot >= 0) slab->SetMobility(slot, value);
    buffer->mobility = slot >= 0 ? slab->mobility() : value;
  };
  set(mobility);
  if (mobility == Mobility::kMovable) return absl::OkStatus();
  buffer->MarkDirty();
  if (TryPin(buffer)) {
    Unpin(buffer);
    return absl::OkStatus();
  }
  const Mobility before = old;
  const mets_access access = {address, 0, METS_WRITE};
  Op* op;
  absl::Status status = BeginOp(&access, 1, 0, &op);
  if (!status.ok()) {
    set(before);
    return status;
  }
  EndOp(op);
  return absl::OkStatus();
}

bool Device::ServeFault(const void* address) {
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->word.phase() == Phase::kFree) return false;
  // Somebody may just have brought it back.
  if (buffer->word.phase() == Phase::kResident) return true;
  totals_.unobserved_accesses.fetch_add(1, std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    buffer->mobility = Mobility::kHeld;
    Slab* slab = buffer->slab.load(std::memory_order_relaxed);
    const int slot = slab == nullptr ? -1 : slab->SlotOf(address);
    if (slot >= 0) slab->SetMobility(slot, Mobility::kHeld);
  }
  for (;;) {
    const absl::Status status = Admission::BringBack(*this, buffer, address);
    if (status.ok()) return true;
    if (absl::IsInvalidArgument(status)) return false;
    Log(LogLevel::kError,
        absl::StrCat("a thread waits for a buffer that it touched without "
                     "announcing it: ",
                     status.message()));
  }
}

}  // namespace mets::client
