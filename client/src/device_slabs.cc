// Device: small allocations, in slabs.
#include <utility>

#include "client/src/device.h"
#include "common/base/status_macros.h"

namespace mets::client {
namespace {

// For an allocation that takes what there is now, or nothing.
constexpr absl::Duration kNoPatience = -absl::InfiniteDuration();

}  // namespace

bool Device::AllocInSlab(const mets_alloc_options& options, Stream stream,
                         Op* op, void** address, Slab** used,
                         Slab::Debt* debt) {
  const Mobility mobility = Allowed(static_cast<Mobility>(options.mobility));
  absl::MutexLock lock(&mutex_);
  const SlabSet::Room room =
      slabs_.FindRoom(mobility, options.bytes, options.align, stream);
  Slab* slab = room.slab;
  // In an op the slab must be resident: a gated program's may be away.
  const bool pins = op != nullptr && op->PinsNew(mobility);
  bool unused;
  if (!room.found() || (pins && !slab->buffer()->word.TryPin(&unused))) {
    return false;
  }
  if (pins) op->AddPin(slab->buffer(), false);
  slab->buffer()->MarkDirty();
  slab->buffer()->AddStreams(stream.bit);
  *address = slabs_.Allocate(room, options.bytes, options.align, mobility);
  slab->buffer()->mobility = Allowed(slab->mobility());
  NoteAlloc(options.bytes);
  if (recorder_.on()) recorder_.Write(BufferPool::IdOf(*slab->buffer()));
  *used = slab;
  *debt = slab->debt();
  return true;
}

absl::Status Device::AllocSmall(const mets_alloc_options& options,
                                absl::Duration patience, Stream stream, Op* op,
                                void** address) {
  // Streams that share a bit share slabs, in host order.
  if (stream.bit == kSharedBit) stream = Stream();
  const Mobility mobility = Allowed(static_cast<Mobility>(options.mobility));
  Slab* slab;
  Slab::Debt debt;
  if (AllocInSlab(options, stream, op, address, &slab, &debt)) {
    if (debt.others == 0) return absl::OkStatus();
    streams_.Order(debt.stream, debt.others);
    absl::MutexLock lock(&mutex_);
    slab->Settle(debt);  // It is there while this allocation is.
    return absl::OkStatus();
  }
  const Bytes least =
      Bytes(static_cast<int64_t>(options.bytes)).RoundUpTo(granularity_);
  Bytes size;
  {
    absl::MutexLock lock(&mutex_);
    size = slabs_.SlabBytes(options.bytes);
  }
  const auto alloc = [&](Bytes slab, absl::Duration how_long) {
    return AllocBuffer(slab, slab.count(), mobility, how_long, stream, op,
                       /*slab=*/true);
  };
  // A smaller one now is better than to wait.
  absl::StatusOr<Buffer*> slab_buffer = alloc(size, kNoPatience);
  if (!slab_buffer.ok() && least < size) {
    slab_buffer = alloc(least, kNoPatience);
    if (slab_buffer.ok()) size = least;
  }
  if (!slab_buffer.ok()) slab_buffer = alloc(size, patience);
  METS_ASSIGN_OR_RETURN(Buffer* const buffer, std::move(slab_buffer));
  absl::MutexLock lock(&mutex_);
  const SlabSet::Room room = slabs_.Add(buffer, size, mobility, stream);
  *address = slabs_.Allocate(room, options.bytes, options.align, mobility);
  buffer->slab.store(room.slab, std::memory_order_relaxed);
  NoteAlloc(options.bytes);
  return absl::OkStatus();
}

void Device::FreeSmall(Buffer* buffer, void* address, StreamMask stream) {
  uint64_t bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    Slab* slab = buffer->slab.load(std::memory_order_relaxed);
    if (slab == nullptr) return;
    buffer->AddStreams(stream);
    bytes = slabs_.Free(slab, address,
                        buffer->streams.load(std::memory_order_relaxed));
    if (bytes == 0) return;
    buffer->mobility = Allowed(slab->mobility());
    live_bytes_ -= bytes;
    if (!slab->empty()) return;
    // A phantom eviction would set the slab aside, of no use to anybody.
    if (phantoms_ == nullptr && slabs_.KeepAsSpare(slab)) return;
    RemoveSlab(buffer);
  }
  FreeBuffer(buffer);
}

bool Device::FreeEmptySlab(uint64_t buffer_id) {
  Buffer* buffer;
  {
    absl::MutexLock lock(&mutex_);
    buffer = buffers_.Find(buffer_id);
    const Slab* slab = buffer == nullptr
                           ? nullptr
                           : buffer->slab.load(std::memory_order_relaxed);
    if (slab == nullptr || !slab->empty() ||
        buffer->mobility != Mobility::kMovable) {
      return false;
    }
    RemoveSlab(buffer);
  }
  FreeBuffer(buffer);
  return true;
}

bool Device::FreeSpareSlabs() {
  std::vector<Buffer*> spares;
  {
    absl::MutexLock lock(&mutex_);
    for (Slab* spare : slabs_.Spares()) {
      spares.push_back(spare->buffer());
      RemoveSlab(spare->buffer());
    }
  }
  for (Buffer* spare : spares) FreeBuffer(spare);
  return !spares.empty();
}

void Device::RemoveSlab(Buffer* buffer) {
  slabs_.Remove(buffer->slab.exchange(nullptr, std::memory_order_relaxed));
  buffer->bytes = 0;
}

}  // namespace mets::client
