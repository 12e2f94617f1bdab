// Device: shared memory. Invariants:
//  * the chunks of a share are `shared` from TakePublished or TakeAttached to
//    LeaveShare: not held, not idle, in no lent range;
//  * a share's buffer is resident, fixed and read-only, and the daemon does not
//    know it as a buffer.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "client/src/log.h"
#include "common/base/status_macros.h"

namespace mets::client {

absl::StatusOr<Buffer*> Device::BeginPublishing(void* address) {
  METS_RETURN_IF_ERROR(SetMobility(address, Mobility::kFixed));
  Buffer* buffer = table_->Find(address);
  if (!TryPin(buffer)) {
    return absl::InvalidArgumentError("the address is in no live buffer");
  }
  absl::MutexLock lock(&mutex_);
  for (Chunk* chunk : buffer->chunks) {
    if (chunk->publishing) {
      Unpin(buffer);
      return absl::InvalidArgumentError("the buffer is being published");
    }
  }
  for (Chunk* chunk : buffer->chunks) chunk->publishing = true;
  return buffer;
}

absl::Status Device::Publish(void* address, const ShareWish& wish) {
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  METS_RETURN_IF_ERROR(FindBuffer(address, &info));
  if (info.address != address) {
    return absl::InvalidArgumentError(
        "the address is inside an allocation: what is published begins where "
        "mets_alloc said");
  }
  if (table_->Find(address)->slab.load() != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an allocation of ", FormatBytes(Bytes(info.bytes)), ": only those of ",
        FormatBytes(slab_threshold_),
        " and more have memory of their own, which can be published"));
  }
  METS_ASSIGN_OR_RETURN(Buffer * buffer, BeginPublishing(address));
  const absl::Status status = AskToPublish(buffer, wish);
  if (!status.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      for (Chunk* chunk : buffer->chunks) chunk->publishing = false;
      buffer->mobility = static_cast<Mobility>(info.mobility);
    }
    const absl::Status writable = driver_->SetReadOnly(
        static_cast<char*>(address), HandlesOf(buffer->chunks), false);
    if (!writable.ok()) {
      Log(LogLevel::kError,
          absl::StrCat("a buffer that could not be published stays read-only: ",
                       writable.message()));
    }
  }
  Unpin(buffer);
  return status;
}

absl::Status Device::AskToPublish(Buffer* buffer, const ShareWish& wish) {
  v1::ClientMessage message;
  v1::PublishShare* publish = message.mutable_publish_share();
  publish->set_device(options_.id);
  publish->set_name(wish.name);
  publish->set_checksum(wish.checksum);
  publish->set_bytes(buffer->bytes);
  for (const Chunk* chunk : buffer->chunks) {
    if (chunk->orphan) {
      return absl::FailedPreconditionError(
          "the buffer's memory is from before a restart of metsd, which cannot "
          "pass it on; copy it into a new buffer and publish that");
    }
    publish->add_chunk_ids(chunk->id);
  }
  METS_RETURN_IF_ERROR(streams_.Wait(buffer->streams.load()));
  METS_RETURN_IF_ERROR(
      driver_->SetReadOnly(buffer->base.load(std::memory_order_relaxed),
                           HandlesOf(buffer->chunks), true));
  return uplink_.AskForShare(
      *this, std::move(message),
      [this, buffer, &wish](const v1::ShareAnswer& answer) {
        return TakePublished(buffer, wish.name, answer);
      });
}

HeldShare* Device::AddShare(const std::string& name,
                            const v1::ShareAnswer& answer,
                            const ChunkSet& chunks) {
  HeldShare share;
  share.id = answer.share_id();
  share.epoch = answer.epoch();
  share.name = name;
  share.size = TotalSize(chunks);
  share.chunks = chunks;
  for (Chunk* chunk : chunks) {
    chunk->publishing = false;
    chunk->shared = true;
  }
  shares_.push_back(std::move(share));
  return &shares_.back();
}

absl::Status Device::TakePublished(Buffer* buffer, const std::string& name,
                                   const v1::ShareAnswer& answer) {
  absl::MutexLock lock(&mutex_);
  for (Chunk* chunk : buffer->chunks) chunks_.Drop(chunk);
  buffer->share = AddShare(name, answer, buffer->chunks);
  buffer_bytes_ -= buffer->range_size();
  if (buffer->reported.known) {
    freed_ids_.push_back(BufferPool::IdOf(*buffer));
    buffer->reported = ReportedBuffer();
  }
  return absl::OkStatus();
}

absl::StatusOr<HeldShare*> Device::TakeAttached(const std::string& name,
                                                const v1::ShareAnswer& answer) {
  absl::MutexLock lending(&lending_);
  std::vector<Buffer*> lent;
  ChunkSet chunks;
  absl::ReleasableMutexLock lock(&mutex_);
  for (const v1::Chunk& ref : answer.chunks()) {
    Chunk* chunk = chunks_.Find(ref.chunk_id());
    if (chunk == nullptr || chunk->held || chunk->shared) {
      return absl::InternalError(
          absl::StrCat("metsd shares chunk ", ref.chunk_id(), ", which is ",
                       chunk == nullptr ? "unknown" : "in use"));
    }
    if (chunk->lent_in != nullptr) lent.push_back(chunk->lent_in);
    chunks.push_back(chunk);
  }
  HeldShare* share = AddShare(name, answer, chunks);
  lock.Release();
  EndLoans(lent);
  return share;
}

absl::StatusOr<void*> Device::AttachShare(const ShareWish& wish) {
  v1::ClientMessage message;
  v1::AttachShare* attach = message.mutable_attach_share();
  attach->set_device(options_.id);
  attach->set_name(wish.name);
  attach->set_checksum(wish.checksum);
  attach->set_bytes(wish.bytes);
  HeldShare* share = nullptr;
  uint64_t bytes = 0;
  METS_RETURN_IF_ERROR(uplink_.AskForShare(
      *this, std::move(message), [&](const v1::ShareAnswer& answer) {
        absl::StatusOr<HeldShare*> taken = TakeAttached(wish.name, answer);
        if (taken.ok()) share = *taken;
        bytes = answer.bytes();
        return taken.status();
      }));
  const absl::StatusOr<Buffer*> buffer = MapShare(share, bytes);
  if (!buffer.ok()) {
    LeaveShare(share);
    return buffer.status();
  }
  return (*buffer)->base.load(std::memory_order_relaxed);
}

absl::StatusOr<Buffer*> Device::MapShare(HeldShare* share, uint64_t bytes) {
  METS_ASSIGN_OR_RETURN(Buffer * buffer, MapRange(share->size, share->chunks));
  char* base = buffer->base.load(std::memory_order_relaxed);
  const absl::Status status =
      driver_->SetReadOnly(base, HandlesOf(share->chunks), true);
  if (!status.ok()) {
    Dismantle({buffer});
    return status;
  }
  {
    absl::MutexLock lock(&mutex_);
    buffer_bytes_ -= buffer->range_size();  // The daemon counts it elsewhere.
    buffer->share = share;
    Begin(buffer, bytes, Mobility::kFixed, nullptr);
    NoteAlloc(bytes);
  }
  step_watch_.Alloc(BufferPool::IdOf(*buffer),
                    Bytes(static_cast<int64_t>(bytes)), nullptr);
  return buffer;
}

absl::Status Device::DetachShare(void* address) {
  Buffer* buffer = table_->Owns(address) ? table_->Find(address) : nullptr;
  if (buffer == nullptr || buffer->share.load() == nullptr ||
      buffer->base.load(std::memory_order_relaxed) != address) {
    return absl::InvalidArgumentError("no share begins at the address");
  }
  Free(address);
  return absl::OkStatus();
}

bool Device::SaysReadOnly(Buffer* buffer) {
  absl::MutexLock lock(&mutex_);
  const HeldShare* share = buffer->share;
  if (share == nullptr) return false;
  Log(LogLevel::kError,
      absl::StrCat("a write to share '", share->name, "', which is read-only"));
  return true;
}

void Device::DisposeShare(Buffer* buffer) {
  HeldShare* share = buffer->share;
  buffer->share = nullptr;
  Dismantle({buffer});
  LeaveShare(share);
}

void Device::LeaveShare(HeldShare* share) {
  std::vector<ChunkHandle> forgotten;
  {
    absl::MutexLock lock(&mutex_);
    for (Chunk* chunk : share->chunks) {
      chunk->shared = false;
      if (!chunk->orphan) continue;
      forgotten.push_back(chunk->handle);
      EraseChunk(chunk);
    }
  }
  // What orphans held is free only once they are closed.
  for (ChunkHandle handle : forgotten) driver_->ForgetChunk(handle);
  v1::ClientMessage message;
  v1::DetachShare* detach = message.mutable_detach_share();
  detach->set_device(options_.id);
  detach->set_share_id(share->id);
  detach->set_epoch(share->epoch);
  absl::MutexLock lock(&mutex_);
  SendLocked(std::move(message));
  shares_.remove_if([share](const HeldShare& s) { return &s == share; });
}

}  // namespace mets::client
