#include "client/src/device.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/src/admission.h"
#include "client/src/log.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

constexpr uint64_t kMaxAlign = 64 << 10;

absl::Status CheckAlloc(const mets_alloc_options& options) {
  const uint64_t align = options.align;
  if (options.bytes == 0 || options.bytes > uint64_t{1} << 62) {
    return absl::InvalidArgumentError(
        absl::StrCat("an allocation of ", options.bytes, " bytes"));
  }
  if ((align & (align - 1)) != 0 || align > kMaxAlign) {
    return absl::InvalidArgumentError(absl::StrCat(
        "align is ", align, "; it is a power of two up to ", kMaxAlign));
  }
  if (options.mobility < METS_MOVABLE || options.mobility > METS_FIXED) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mobility ", static_cast<int>(options.mobility), " is unknown"));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t CoarseNowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint32_t>(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

Device* FindDevice(const std::vector<Device*>& devices, const std::string& id) {
  for (Device* device : devices) {
    if (device->options().id == id) return device;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Device>> Device::Create(
    Uplink& uplink, std::unique_ptr<MapDriver> driver, DeviceOptions options) {
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<AddressTable> table,
      AddressTable::Create(driver->region_begin(), driver->region_end()));
  METS_ASSIGN_OR_RETURN(const StreamHandle mover, driver->CreateStream());
  auto device = absl::WrapUnique(new Device(
      uplink, std::move(driver), std::move(table), std::move(options)));
  device->mover_ = mover;
  return device;
}

Device::Device(Uplink& uplink, std::unique_ptr<MapDriver> driver,
               std::unique_ptr<AddressTable> table, DeviceOptions options)
    : uplink_(uplink),
      driver_(std::move(driver)),
      table_(std::move(table)),
      options_(std::move(options)),
      slab_threshold_(
          options_.phantom.is_zero()
              ? driver_->info().slab_threshold
              : std::min(options_.phantom, driver_->info().slab_threshold)),
      granularity_(driver_->info().granularity),
      keeps_mappings_(driver_->info().keeps_mappings),
      limit_(options_.limit.count()),
      phantoms_(options_.phantom.is_zero()
                    ? nullptr
                    : std::make_unique<MissedAccesses>()),
      gate_(
          options_.id,
          [this](v1::ClientMessage m) { uplink_.Send(std::move(m)); },
          [this] { return NothingPinned(); }, &waits_,
          {[this](uint64_t turn) { return drainer_.Drain(turn); },
           [this] {
             Lend();
             // Who is next may need what is left: it is to be known.
             ReportChanges(ReportScope::kAll);
           },
           [this] {
             absl::MutexLock lock(&mutex_);
             return buffer_bytes_ + swapped_bytes_;
           },
           [this] { return streams_.Idle(); }}),
      step_watch_(options_.id,
                  [this](const TimeMark& from, const TimeMark& to) {
                    return driver_->TimeBetween(from, to);
                  }),
      slabs_(granularity_),
      step_meter_(/*cautious=*/options_.gated),
      drainer_(streams_, [this](uint64_t turn) { gate_.Drained(turn); }),
      plan_runner_({[this](uint64_t buffer, const v1::Slot& slot) {
                      EvictByPlan(buffer, slot);
                    },
                    [this](uint64_t buffer, absl::FunctionRef<void()> then) {
                      return RestoreByPlan(buffer, then);
                    }},
                   driver_->info().moves) {}

Device::~Device() = default;

void Device::SetLimits(Bytes limit, bool tight) {
  limit_.store(limit.count());
  tight_.store(tight);
}

absl::Status Device::Alloc(const mets_alloc_options& options, void** address) {
  METS_RETURN_IF_ERROR(CheckAlloc(options));
  Stream stream;
  if (options.stream != nullptr) {
    METS_ASSIGN_OR_RETURN(stream, streams_.Find(options.stream));
  }
  Op* op = CurrentOp();
  if (op != nullptr && op->device != this) op = nullptr;
  const Mobility mobility = Allowed(static_cast<Mobility>(options.mobility));
  const Bytes bytes(static_cast<int64_t>(options.bytes));
  const absl::Duration patience = options.deadline_ms < 0
                                      ? options_.wait
                                      : absl::Milliseconds(options.deadline_ms);
  if (bytes < slab_threshold_) {
    METS_RETURN_IF_ERROR(AllocSmall(options, patience, stream, op, address));
  } else {
    METS_ASSIGN_OR_RETURN(
        Buffer * buffer,
        AllocBuffer(bytes.RoundUpTo(granularity_), options.bytes, mobility,
                    patience, stream, op, /*slab=*/false));
    *address = buffer->base.load(std::memory_order_relaxed);
    step_watch_.Alloc(BufferPool::IdOf(*buffer), bytes,
                      op == nullptr ? nullptr : &op->step);
  }
  if (phantoms_ != nullptr && op == nullptr) Hide(table_->Find(*address));
  if (op != nullptr) {
    op->allocated_bytes += options.bytes;
    op->largest_bytes = std::max(op->largest_bytes, options.bytes);
    ++op->allocated_count;
  }
  return absl::OkStatus();
}

absl::StatusOr<Buffer*> Device::AllocBuffer(Bytes size, uint64_t bytes,
                                            Mobility mobility,
                                            absl::Duration patience,
                                            Stream stream, Op* op, bool slab) {
  ChunkSet chunks;
  Buffer* buffer = nullptr;
  absl::Time deadline = absl::InfinitePast();  // Until it has to wait.
  bool asked = false;
  for (;;) {
    bool found = false;
    {
      absl::MutexLock lock(&mutex_);
      buffer = TakeMapped(size, stream, op);
      if (buffer != nullptr) {
        Begin(buffer, bytes, mobility, op);
        if (!slab) NoteAlloc(bytes);
        ++cache_hits_;
      } else {
        found = TakeReservedChunks(size, op, &chunks) ||
                (!(tight() && keeps_mappings_) &&
                 chunks_.TakeUpTo(size, tight() ? LargestFit(size) : size,
                                  &chunks));
      }
    }
    if (buffer != nullptr) {
      PassTo(stream, buffer);
      return buffer;
    }
    if (found) break;
    // While metsd has some left, what is cached stays as it is, and mapped.
    const bool scarce = tight() || asked;
    if (scarce && FreeSpareSlabs()) continue;
    const WaitClock::Wait wait(waits_);
    if (scarce && TakeOrAwait(size, &chunks)) break;
    if (deadline == absl::InfinitePast()) {
      deadline = SteadyNow() + patience;
    }
    const absl::StatusOr<bool> acquired = AcquireOne(
        size, scarce ? deadline : absl::InfinitePast(), asked, op, &chunks);
    if (!acquired.ok() && scarce) return acquired.status();
    if (acquired.ok() && *acquired) break;
    asked = true;
  }
  METS_ASSIGN_OR_RETURN(buffer, MapNew(TotalSize(chunks), chunks));
  PassTo(stream, buffer);
  absl::MutexLock lock(&mutex_);
  Begin(buffer, bytes, mobility, op);
  if (!slab) NoteAlloc(bytes);
  return buffer;
}

Buffer* Device::TakeMapped(Bytes size, const Stream& stream, Op* op) {
  if (op != nullptr) {
    for (size_t i = 0; i < op->ranges.size(); ++i) {
      Buffer* range = op->ranges[i];
      const Bytes has = range->range_size();
      if (!Fits(has, size)) continue;
      op->ranges[i] = op->ranges.back();
      op->ranges.pop_back();
      return range;
    }
  }
  return cache_.TakeFit(size, stream);
}

bool Device::TakeReservedChunks(Bytes size, Op* op, ChunkSet* chunks) {
  if (op == nullptr) return false;
  for (size_t i = 0; i < op->chunks.size(); ++i) {
    ReservedChunks& reserved = op->chunks[i];
    if (reserved.range < size) continue;
    if (!SplitExact(size, &reserved.chunks, chunks)) continue;
    reserved.range -= size;
    if (reserved.chunks.empty()) op->chunks.erase(op->chunks.begin() + i);
    return true;
  }
  return false;
}

absl::StatusOr<bool> Device::AcquireOne(Bytes size, absl::Time deadline,
                                        bool asked, Op* op, ChunkSet* chunks) {
  const auto take = [op, chunks](Grant grant) {
    if (grant.overdraft && op != nullptr) op->AddToken(grant.generation);
    *chunks = std::move(grant.ranges[0]);
    return true;
  };
  if (op == nullptr) {
    METS_ASSIGN_OR_RETURN(Grant grant,
                          uplink_.Acquire(*this, {size}, deadline, {}));
    return take(std::move(grant));
  }
  if (op->tokens == 0 && !asked) {
    absl::StatusOr<Grant> now =
        uplink_.Acquire(*this, {size}, absl::InfinitePast(), {});
    if (now.ok()) return take(*std::move(now));
    // Also when the daemon is away, there is nothing now; it may come back.
    if (!absl::IsResourceExhausted(now.status()) &&
        !absl::IsUnavailable(now.status())) {
      return now.status();
    }
    if (deadline == absl::InfinitePast()) return now.status();
  }
  // It waits with pinned buffers: only one op at a time may. What a section
  // uses is not known.
  const absl::Time until =
      op->section ? absl::InfiniteFuture() : SteadyNow() + Admission::kKeepFor;
  absl::StatusOr<Grant> grant = uplink_.Acquire(
      *this, {size}, deadline, {WaitMode::kPinned, op->number, until});
  if (grant.ok()) return take(*std::move(grant));
  if (!absl::IsResourceExhausted(grant.status()) || SteadyNow() < until ||
      SteadyNow() >= deadline) {
    return grant.status();
  }
  METS_RETURN_IF_ERROR(Admission::BeginAgain(*this, op, size, deadline));
  return false;
}

absl::StatusOr<Buffer*> Device::MapNew(Bytes size, const ChunkSet& chunks) {
  absl::StatusOr<Buffer*> buffer = MapRange(size, chunks);
  if (!buffer.ok()) GiveBack(chunks, 0);
  return buffer;
}

absl::StatusOr<Buffer*> Device::MapRange(Bytes size, const ChunkSet& chunks) {
  const std::vector<ChunkHandle> handles = HandlesOf(chunks);
  METS_ASSIGN_OR_RETURN(char* base, driver_->ReserveRangeFor(handles, size));
  const absl::Status mapped = driver_->Map(base, handles);
  if (!mapped.ok()) {
    driver_->ReleaseRange(base, size);
    return mapped;
  }
  absl::MutexLock lock(&mutex_);
  Buffer* buffer = buffers_.Take();
  buffer->base.store(base, std::memory_order_relaxed);
  buffer->size.store(size.count(), std::memory_order_relaxed);
  buffer->chunks = chunks;
  SetRange(chunks, buffer);
  StreamTable::Moment used = 0;
  for (Chunk* chunk : chunks) {
    buffer->AddStreams(std::exchange(chunk->streams, 0));
    used = std::max(used, chunk->used);
  }
  buffer->used.store(used, std::memory_order_relaxed);
  table_->Set(base, size.count(), buffer);
  return buffer;
}

void Device::Begin(Buffer* buffer, uint64_t bytes, Mobility mobility, Op* op) {
  BufferPool::BeginGeneration(buffer);
  buffer->bytes = bytes;
  buffer->mobility = mobility;
  buffer->slot = SwapSlot();
  buffer->reported = ReportedBuffer();
  buffer->pinned_before = false;
  buffer->in_order = false;  // The answer is about the one before.
  buffer->dirty.store(true, std::memory_order_relaxed);
  buffer->used.store(StreamTable::kNow, std::memory_order_relaxed);
  buffer->Touch(Buffer::kBegun);
  buffer_bytes_ += buffer->range_size();
  peak_buffer_bytes_ = std::max(peak_buffer_bytes_, buffer_bytes_);
  step_meter_.NoteLive(buffer_bytes_ + swapped_bytes_);
  const bool pins = op != nullptr && op->PinsNew(mobility);
  METS_CHECK(
      buffer->word.TryMove(Phase::kFree, Phase::kResident, pins ? 1 : 0));
  if (pins) op->AddPin(buffer, true);
  if (recorder_.on()) {
    recorder_.Alloc(BufferPool::IdOf(*buffer),
                    Bytes(static_cast<int64_t>(bytes)));
  }
}

void Device::Free(void* address, mets_stream stream) {
  if (address == nullptr) return;
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr) {
    Log(LogLevel::kError, "mets_free of an address that was not allocated");
    return;
  }
  const StreamMask on = streams_.FindOrHost(stream).bit;
  if (buffer->slab.load(std::memory_order_relaxed) != nullptr) {
    FreeSmall(buffer, address, on);
  } else if (buffer->base.load(std::memory_order_relaxed) != address) {
    Log(LogLevel::kError, "mets_free of an address inside an allocation");
  } else {
    buffer->AddStreams(on);
    FreeBuffer(buffer);
  }
  if (on != 0 && tight()) streams_.Mark();
}

void Device::FreeBuffer(Buffer* buffer) {
  const uint64_t bytes = buffer->bytes;
  Op* op = CurrentOp();
  const bool own = op != nullptr && op->DropAllocated(buffer);
  if (!own) op = nullptr;
  const uint64_t id = BufferPool::IdOf(*buffer);
  const bool ended = TryEnd(buffer, bytes, op);
  if (!ended && !buffer->word.MarkFreed()) {
    Log(LogLevel::kError, "mets_free of an address that was freed already");
    return;
  }
  if (recorder_.on_after_free()) recorder_.Free(id);
  step_watch_.Free(id);
  if (ended) return;
  if (own) buffer->word.Unpin();
  TryDispose(buffer, bytes, op);
}

bool Device::TryEnd(Buffer* buffer, uint64_t freed, Op* op) {
  absl::MutexLock lock(&mutex_);
  if (buffer->share.load(std::memory_order_relaxed) != nullptr ||
      !buffer->word.TryEnd(op == nullptr ? 0 : 1)) {
    return false;
  }
  live_bytes_ -= freed;
  EndResident(buffer, op);
  return true;
}

void Device::EndResident(Buffer* buffer, Op* op) {
  if (buffer->reported.known) freed_ids_.push_back(BufferPool::IdOf(*buffer));
  buffer_bytes_ -= buffer->range_size();
  SetSlot(buffer, SwapSlot());
  if (op != nullptr && op->reserved) {
    op->ranges.push_back(buffer);
  } else {
    PutIdle(buffer);
  }
}

void Device::TryDispose(Buffer* buffer, uint64_t freed, Op* op) {
  Phase was;
  if (phantoms_ != nullptr && buffer->word.freed()) Unhide(buffer);
  absl::ReleasableMutexLock lock(&mutex_);
  live_bytes_ -= freed;
  if (!buffer->word.TryClaim(&was)) return;
  if (buffer->share.load(std::memory_order_relaxed) != nullptr) {
    lock.Release();
    DisposeShare(buffer);
    return;
  }
  if (was == Phase::kResident) {
    EndResident(buffer, op);
    return;
  }
  if (buffer->reported.known) freed_ids_.push_back(BufferPool::IdOf(*buffer));
  --away_;
  swapped_bytes_ -= buffer->range_size();
  const std::vector<ExtentHandle> unused = DropSlot(buffer);
  char* base = buffer->base.load(std::memory_order_relaxed);
  const Bytes size = buffer->range_size();
  table_->Set(base, size.count(), nullptr);
  buffers_.Put(buffer);
  lock.Release();
  for (ExtentHandle extent : unused) driver_->ForgetExtent(extent);
  driver_->ReleaseRange(base, size);
}

std::vector<ExtentHandle> Device::DropSlot(Buffer* buffer) {
  const uint64_t epoch = buffer->slot.epoch;
  SetSlot(buffer, SwapSlot());
  return extents_.DropOrphan(epoch, buffer->range_size());
}

void Device::NoteAlloc(uint64_t bytes) {
  ++allocations_;
  live_bytes_ += bytes;
  peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_);
}

absl::Status Device::FindBuffer(const void* address, mets_buffer_info* info) {
  absl::MutexLock lock(&mutex_);
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->word.phase() == Phase::kFree ||
      buffer->word.freed()) {
    return absl::InvalidArgumentError("the address is in no live buffer");
  }
  info->address = buffer->base.load(std::memory_order_relaxed);
  info->bytes = buffer->bytes;
  info->mobility = static_cast<mets_mobility>(buffer->mobility);
  if (Slab* slab = buffer->slab.load(std::memory_order_relaxed)) {
    const int64_t slot = slab->SlotOf(address);
    if (slot < 0) {
      return absl::InvalidArgumentError("the address is in no allocation");
    }
    info->address = slab->AddressOf(slot);
    info->bytes = slab->BytesOf(slot);
    info->mobility = static_cast<mets_mobility>(slab->MobilityOf(slot));
  }
  info->buffer_id = BufferPool::IdOf(*buffer);
  info->resident = IsResident(buffer->word.phase());
  return absl::OkStatus();
}

void Device::NoteAcquire(absl::Duration waited) {
  totals_.acquires.fetch_add(1, std::memory_order_relaxed);
  if (waited > absl::ZeroDuration()) NoteWait(waited);
}

void Device::NoteWait(absl::Duration waited) {
  totals_.waits.fetch_add(1, std::memory_order_relaxed);
  totals_.wait_ns.fetch_add(absl::ToInt64Nanoseconds(waited),
                            std::memory_order_relaxed);
}

void Device::ResetPeak() {
  absl::MutexLock lock(&mutex_);
  peak_live_bytes_ = live_bytes_;
}

}  // namespace mets::client
