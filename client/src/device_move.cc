// Device: eviction, restores and faults. Invariants:
//  * several evictions may be under way, each buffer in one: kEvicting belongs
//    to the eviction whose number is the buffer's `departure`. One that was
//    called off may find that the buffer is in another by then, which began
//    under mutex_; so it looks under mutex_ too;
//  * copies out run on one stream, so that a copy for an eviction that was
//    called off ends before a later one to the same slot; a range is unmapped
//    only when no copy reads it (`copies`);
//  * `chunks` is empty exactly in kSwapped and kRestoring;
//  * a slot is read only in kRestoring, and written only in kEvicting, or for
//    what was called off then;
//  * a slot is of at most one buffer (slot_owners_) from an eviction's
//    beginning on, also when the daemon has not heard of it yet: who else is to
//    be evicted to it takes it away from that one, which is dirty then, or
//    stays when that one is not simply resident;
//  * a held buffer is counted in away_ when its evictor finds that somebody
//    waits at the closed gate. Whoever enters later sees it there, and it waits
//    or calls the eviction off.
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

Device::EvictResult Ended(v1::BufferOutcome outcome) {
  return {outcome, false, Bytes()};
}

void LogFailedMove(const absl::Status& status) {
  Log(LogLevel::kWarning,
      absl::StrCat("a buffer could not be moved: ", status.message()));
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
    if (buffer->word.TryMove(Phase::kEvicting, Phase::kResuming) ||
        buffer->word.TryMove(Phase::kHidden, Phase::kResuming)) {
      Resume(buffer);
      continue;
    }
    WaitWhileOwned(buffer);
    const Phase phase = buffer->word.phase();
    if (phase == Phase::kSwapped) return PinResult::kSwapped;
    if (phase == Phase::kFree) return PinResult::kGone;
  }
}

void Device::NoteAway(Buffer* buffer) {
  ++away_;
  Slab* slab = buffer->slab.load(std::memory_order_relaxed);
  if (slab == nullptr || buffer->mobility != Mobility::kMovable) return;
  slabs_.SetAside(slab);
}

void Device::NoteBack(Buffer* buffer) {
  --away_;
  Slab* slab = buffer->slab.load(std::memory_order_relaxed);
  if (slab != nullptr) slabs_.PutBack(slab);
}

void Device::Resume(Buffer* buffer) {
  METS_CHECK_OK(driver_->AllowAccess(
      buffer->base.load(std::memory_order_relaxed), HandlesOf(buffer->chunks)));
  {
    absl::MutexLock lock(&mutex_);
    NoteBack(buffer);
    METS_CHECK(buffer->word.TryMove(Phase::kResuming, Phase::kResident));
    changed_.SignalAll();
  }
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
  Buffer* owner =
      it == slot_owners_.end() ? nullptr : buffers_.Find(it->second);
  if (owner == buffer) owner = nullptr;
  // Only here does a buffer leave kResident, except for kFree.
  if (owner != nullptr && owner->word.phase() != Phase::kResident &&
      owner->word.phase() != Phase::kHidden) {
    return false;
  }
  if (!buffer->word.TryStartEviction()) return false;
  if (owner != nullptr && owner->slot.id == slot_id) {
    owner->MarkDirty();
    owner->slot = SwapSlot();
  }
  slot_owners_[slot_id] = BufferPool::IdOf(*buffer);
  return true;
}

void Device::LeaveSlot(const Departure& departure) {
  const auto it = slot_owners_.find(departure.slot.id);
  if (it == slot_owners_.end() || it->second != departure.buffer_id) return;
  const Buffer* buffer = buffers_.Find(departure.buffer_id);
  if (buffer != nullptr && buffer->slot.id == departure.slot.id) return;
  slot_owners_.erase(it);
}

void Device::SetSlot(Buffer* buffer, SwapSlot slot) {
  const uint64_t id = BufferPool::IdOf(*buffer);
  if (buffer->slot.id != 0 && buffer->slot.id != slot.id) {
    const auto it = slot_owners_.find(buffer->slot.id);
    if (it != slot_owners_.end() && it->second == id) slot_owners_.erase(it);
  }
  if (slot.id != 0) slot_owners_[slot.id] = id;
  buffer->slot = std::move(slot);
}

Device::EvictResult Device::Evict(uint64_t buffer_id, const v1::Slot& slot,
                                  std::optional<uint64_t> order_id) {
  EvictResult result;
  std::optional<Departure> departure = BeginEviction(buffer_id, slot, &result);
  if (!departure.has_value()) return result;
  return FinishEviction(*std::move(departure), order_id);
}

std::optional<Device::Departure> Device::Choose(uint64_t buffer_id,
                                                const v1::Slot& slot,
                                                bool* held,
                                                EvictResult* result) {
  absl::MutexLock lock(&mutex_);
  Departure departure;
  departure.buffer_id = buffer_id;
  Buffer* buffer = departure.buffer = buffers_.Find(buffer_id);
  if (buffer == nullptr || buffer->word.freed()) {
    *result = Ended(v1::BUFFER_OUTCOME_FREED);
    return std::nullopt;
  }
  *result = Ended(v1::BUFFER_OUTCOME_SKIPPED);
  *held = buffer->mobility == Mobility::kHeld;
  if (buffer->mobility == Mobility::kFixed || (*held && !options_.gated)) {
    return std::nullopt;
  }
  // Its range, when it was taken from the cache, may be larger.
  absl::StatusOr<SwapSlot> resolved =
      ResolveSlot(slot, Bytes(static_cast<int64_t>(buffer->bytes)));
  if (!resolved.ok()) {
    Log(LogLevel::kWarning, resolved.status().message());
    *result = Ended(v1::BUFFER_OUTCOME_FAILED);
    return std::nullopt;
  }
  departure.slot = *std::move(resolved);
  if (!TakeSlot(buffer, departure.slot.id)) return std::nullopt;
  NoteAway(buffer);
  departure.number = buffer->departure = ++departures_;
  departure.size = buffer->range_size();
  departure.used =
      *held ? StreamTable::kNow : buffer->used.load(std::memory_order_relaxed);
  departure.clean = !buffer->dirty.load(std::memory_order_relaxed) &&
                    buffer->slot.id == departure.slot.id &&
                    buffer->slot.epoch == departure.slot.epoch;
  return departure;
}

std::optional<Device::Departure> Device::BeginEviction(uint64_t buffer_id,
                                                       const v1::Slot& slot,
                                                       EvictResult* result) {
  bool held = false;
  if (phantoms_ != nullptr) UnhideForEviction(buffer_id);
  if (FreeEmptySlab(buffer_id)) {
    *result = Ended(v1::BUFFER_OUTCOME_FREED);
    return std::nullopt;
  }
  std::optional<Departure> departure = Choose(buffer_id, slot, &held, result);
  if (!departure.has_value()) return std::nullopt;
  Buffer* buffer = departure->buffer;
  char* base = buffer->base.load(std::memory_order_relaxed);
  const std::vector<ChunkHandle> handles = HandlesOf(buffer->chunks);
  const bool may_leave = !held || gate_.Waited();
  const absl::Status blocked =
      may_leave ? driver_->BlockAccess(base, handles) : absl::OkStatus();
  const bool leaves = may_leave && blocked.ok();
  if (leaves) buffer->copies.fetch_add(1, std::memory_order_relaxed);
  METS_CHECK(buffer->word.TryMove(
      Phase::kBlocking, leaves ? Phase::kEvicting : Phase::kResuming));
  Signal();
  if (!leaves) {
    if (!blocked.ok()) LogFailedMove(blocked);
    *result = CallOff(*departure, blocked.ok() ? v1::BUFFER_OUTCOME_SKIPPED
                                               : v1::BUFFER_OUTCOME_FAILED);
    return std::nullopt;
  }
  if (!departure->clean) {
    streams_.Order({mover_, 0}, buffer->streams.load(std::memory_order_relaxed),
                   departure->used);
    const std::vector<ExtentPiece>& pieces = departure->slot.pieces;
    departure->copied =
        driver_->CopyOut(base, handles, pieces, TotalSize(pieces), mover_);
  }
  return departure;
}

Device::EvictResult Device::CallOff(const Departure& departure,
                                    v1::BufferOutcome outcome) {
  {
    absl::MutexLock lock(&mutex_);
    LeaveSlot(departure);
  }
  Resume(departure.buffer);
  return Ended(outcome);
}

Device::EvictResult Device::FinishEviction(Departure departure,
                                           std::optional<uint64_t> order_id) {
  Buffer* buffer = departure.buffer;
  absl::Status status = departure.copied.status();
  if (departure.clean) {
    status = streams_.Wait(buffer->streams.load(std::memory_order_relaxed),
                           departure.used);
  } else if (status.ok()) {
    status = driver_->Wait(*departure.copied);
  }
  bool goes;
  {
    absl::MutexLock lock(&mutex_);
    buffer->copies.fetch_sub(1, std::memory_order_release);
    changed_.SignalAll();
    const auto is_leaving = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return buffer->departure == departure.number &&
             buffer->word.phase() == Phase::kEvicting;
    };
    // That of an eviction which was called off may still read the range.
    while (is_leaving() && buffer->copies.load(std::memory_order_acquire) > 0) {
      changed_.Wait(&mutex_);
    }
    goes = status.ok() && !buffer->word.freed();
    if (buffer->departure != departure.number ||
        !buffer->word.TryMove(Phase::kEvicting,
                              goes ? Phase::kUnmapping : Phase::kResuming)) {
      LeaveSlot(departure);
      return Ended(v1::BUFFER_OUTCOME_SKIPPED);  // It has been brought back.
    }
  }
  if (goes) return CommitEviction(std::move(departure), order_id);
  if (!status.ok()) LogFailedMove(status);
  return CallOff(departure, status.ok() ? v1::BUFFER_OUTCOME_FREED
                                        : v1::BUFFER_OUTCOME_FAILED);
}

Device::EvictResult Device::CommitEviction(Departure departure,
                                           std::optional<uint64_t> order_id) {
  Buffer* buffer = departure.buffer;
  const bool clean = departure.clean;
  const Bytes copied = clean ? Bytes() : TotalSize(departure.slot.pieces);
  METS_CHECK_OK(driver_->Unmap(buffer->base.load(std::memory_order_relaxed),
                               HandlesOf(buffer->chunks)));
  ChunkSet chunks;
  {
    absl::MutexLock lock(&mutex_);
    chunks = std::exchange(buffer->chunks, {});
    SetRange(chunks, nullptr);
    buffer->chunks_before.clear();
    for (const Chunk* chunk : chunks) {
      if (keeps_mappings_) buffer->chunks_before.push_back(chunk->id);
    }
    SetSlot(buffer, std::move(departure.slot));
    buffer->streams.store(0, std::memory_order_relaxed);
    buffer->in_order |= order_id.has_value();
    buffer_bytes_ -= departure.size;
    swapped_bytes_ += departure.size;
    if (!order_id.has_value()) PutIdle(std::exchange(chunks, {}));
    // Before anybody can see that it is away.
    totals_.evictions.fetch_add(1, std::memory_order_relaxed);
    totals_.clean_evictions.fetch_add(clean, std::memory_order_relaxed);
    totals_.evicted_bytes.fetch_add(copied.count(), std::memory_order_relaxed);
    METS_CHECK(buffer->word.TryMove(Phase::kUnmapping, Phase::kSwapped));
    changed_.SignalAll();
  }
  if (order_id.has_value()) GiveBack(chunks, *order_id);
  TryDispose(buffer);
  return {v1::BUFFER_OUTCOME_DONE, clean, departure.size};
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
  AwaitStreams(chunks);
  const absl::StatusOr<Fence> fence =
      driver_->CopyIn(base, HandlesOf(chunks), buffer->slot.pieces, copied,
                      StreamHandle::kHostOrder);
  const absl::Status status =
      fence.ok() ? driver_->Wait(*fence) : fence.status();
  std::vector<ExtentHandle> unused;
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      buffer->chunks = chunks;
      SetRange(chunks, buffer);
      buffer->Touch(CoarseNowMs());  // It is about to be used.
      NoteBack(buffer);
      totals_.restores.fetch_add(1, std::memory_order_relaxed);
      totals_.restored_bytes.fetch_add(copied.count(),
                                       std::memory_order_relaxed);
      swapped_bytes_ -= size;
      buffer_bytes_ += size;
      peak_buffer_bytes_ = std::max(peak_buffer_bytes_, buffer_bytes_);
      const bool orphan = buffer->slot.epoch != uplink_.epoch();
      if (orphan) unused = DropSlot(buffer);
      // Nobody announces writes to what is held.
      const bool held = buffer->mobility != Mobility::kMovable;
      buffer->dirty.store(orphan || held, std::memory_order_relaxed);
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
  return absl::OkStatus();
}

absl::Status Device::SetMobility(void* address, Mobility wanted) {
  const Mobility mobility = Allowed(wanted);
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->word.freed() ||
      buffer->word.phase() == Phase::kFree) {
    return absl::InvalidArgumentError("the address is in no live buffer");
  }
  if (buffer->share.load() != nullptr) {
    return absl::InvalidArgumentError("the address is in a share: it is fixed");
  }
  Mobility old;
  const auto set = [&](Mobility value) {
    absl::MutexLock lock(&mutex_);
    Slab* slab = buffer->slab.load(std::memory_order_relaxed);
    const int64_t slot = slab == nullptr ? -1 : slab->SlotOf(address);
    old = slot >= 0 ? slab->MobilityOf(slot) : buffer->mobility;
    if (slot >= 0) slab->SetMobility(slot, value);
    buffer->mobility = slot >= 0 ? Allowed(slab->mobility()) : value;
    // Nobody announced what used it while it was held.
    buffer->used.store(StreamTable::kNow, std::memory_order_relaxed);
  };
  set(mobility);
  if (mobility == Mobility::kMovable) {
    if (phantoms_ != nullptr) Hide(buffer);
    return absl::OkStatus();
  }
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

bool Device::ServeFault(const void* address, const Access& access) {
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->word.phase() == Phase::kFree) return false;
  if (SaysReadOnly(buffer)) return false;
  // Somebody may just have brought it back.
  if (buffer->word.phase() == Phase::kResident) return true;
  totals_.unobserved_accesses.fetch_add(1, std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    NoteMissed(access, *buffer);
    buffer->mobility = Mobility::kHeld;
    Slab* slab = buffer->slab.load(std::memory_order_relaxed);
    const int64_t slot = slab == nullptr ? -1 : slab->SlotOf(address);
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
