// Invariants, for each chunk:
//  * its alias is mapped from ImportChunk to ForgetChunk;
//  * range() is set between Map/CopyIn and Unmap; accessible() only then;
//  * where it is not accessible, its place in the range is PROT_NONE.
#include "common/device/host/host_map_driver.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr Bytes kSmallestRegion = GiB(8);
constexpr Bytes kSlabThreshold = MiB(1);

Bytes TotalSize(const std::vector<HostChunk*>& chunks) {
  Bytes total;
  for (const HostChunk* chunk : chunks) total += chunk->size();
  return total;
}

// Walks two sequences of memory pieces, calling `copy(a, offset in a, b,
// offset in b, size)` for each stretch that is contiguous in both.
template <typename A, typename B, typename F>
absl::Status ForEachStretch(const A& as, const B& bs, F copy) {
  auto a = as.begin();
  auto b = bs.begin();
  Bytes in_a, in_b;
  while (a != as.end() && b != bs.end()) {
    const Bytes size = std::min((*a)->size() - in_a, b->size - in_b);
    METS_RETURN_IF_ERROR(copy(**a, in_a, *b, in_b, size));
    in_a += size;
    in_b += size;
    if (in_a == (*a)->size()) {
      ++a;
      in_a = Bytes();
    }
    if (in_b == b->size) {
      ++b;
      in_b = Bytes();
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostMapDriver>> HostMapDriver::Create(
    HostMapOptions options) {
  Bytes size = options.region_size.RoundUpTo(AddressRegion::kLargeAlignment);
  for (;;) {
    auto ranges = AddressRegion::Reserve(size);
    auto aliases = AddressRegion::Reserve(size);
    if (ranges.ok() && aliases.ok()) {
      return absl::WrapUnique(new HostMapDriver(
          *std::move(ranges), *std::move(aliases),
          options.move_page_tables ? HostChunk::BestMethod()
                                   : HostChunk::Method::kDuplicate));
    }
    if (size <= kSmallestRegion) {
      return ranges.ok() ? aliases.status() : ranges.status();
    }
    size = Bytes(size.count() / 2).RoundUpTo(AddressRegion::kLargeAlignment);
  }
}

HostMapDriver::HostMapDriver(std::unique_ptr<AddressRegion> ranges,
                             std::unique_ptr<AddressRegion> aliases,
                             HostChunk::Method method)
    : ranges_(std::move(ranges)),
      aliases_(std::move(aliases)),
      method_(method) {}

MapDriverInfo HostMapDriver::info() const {
  return {"host", AddressRegion::kGranularity, kSlabThreshold, 1};
}

absl::StatusOr<ChunkHandle> HostMapDriver::ImportChunk(UniqueFd fd,
                                                       Bytes size) {
  METS_ASSIGN_OR_RETURN(
      std::unique_ptr<HostChunk> chunk,
      HostChunk::Import(*aliases_, std::move(fd), size, method_));
  absl::MutexLock lock(&mutex_);
  const ChunkHandle handle{next_handle_++};
  chunks_.emplace(handle, std::move(chunk));
  return handle;
}

void HostMapDriver::ForgetChunk(ChunkHandle chunk) {
  std::unique_ptr<HostChunk> forgotten;
  absl::MutexLock lock(&mutex_);
  auto it = chunks_.find(chunk);
  if (it == chunks_.end()) return;
  METS_CHECK(it->second->range() == nullptr)
      << "chunk " << static_cast<uint32_t>(chunk) << " is still mapped";
  forgotten = std::move(it->second);  // Unmapped after the lock has gone.
  chunks_.erase(it);
}

absl::StatusOr<ExtentHandle> HostMapDriver::RegisterExtent(UniqueFd fd,
                                                           Bytes size) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<HostExtent> extent,
                        HostExtent::Register(std::move(fd), size));
  return extents_.Add(std::move(extent));
}

void HostMapDriver::ForgetExtent(ExtentHandle extent) { extents_.Take(extent); }

absl::StatusOr<char*> HostMapDriver::ReserveRange(Bytes size) {
  return ranges_->Allocate(size);
}

void HostMapDriver::ReleaseRange(char* range, Bytes size) {
  ranges_->Free(range, size);
}

absl::Status HostMapDriver::Map(char* range,
                                absl::Span<const ChunkHandle> handles) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, nullptr));
  for (HostChunk* chunk : chunks) METS_RETURN_IF_ERROR(chunk->Populate());
  return MakeAccessible(range, chunks);
}

absl::Status HostMapDriver::Unmap(char* range,
                                  absl::Span<const ChunkHandle> handles) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, range));
  METS_RETURN_IF_ERROR(MakeInaccessible(range, chunks));
  for (HostChunk* chunk : chunks) chunk->set_place(nullptr, false);
  return absl::OkStatus();
}

// Nothing is under way but copies, which do not use the range.
absl::Status HostMapDriver::UnmapAfter(absl::Span<const Fence> after,
                                       char* range,
                                       absl::Span<const ChunkHandle> handles) {
  for (Fence fence : after) METS_RETURN_IF_ERROR(Wait(fence));
  METS_ASSIGN_OR_RETURN(const Chunks chunks, Resolve(range, handles, range));
  METS_RETURN_IF_ERROR(Unmap(range, handles));
  ReleaseRange(range, TotalSize(chunks));
  return absl::OkStatus();
}

absl::Status HostMapDriver::BlockAccess(char* range,
                                        absl::Span<const ChunkHandle> handles) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, range));
  return MakeInaccessible(range, chunks);
}

absl::Status HostMapDriver::AllowAccess(char* range,
                                        absl::Span<const ChunkHandle> handles) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, range));
  if (chunks.empty() || chunks.front()->accessible()) return absl::OkStatus();
  return MakeAccessible(range, chunks);
}

absl::Status HostMapDriver::SetReadOnly(char* range,
                                        absl::Span<const ChunkHandle> handles,
                                        bool read_only) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, range));
  return Protect(range, chunks, read_only);
}

absl::Status HostMapDriver::Protect(char* range, const Chunks& chunks,
                                    bool read_only) {
  const int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  const Bytes size = TotalSize(chunks);
  if (mprotect(range, size.count(), access) != 0) {
    return ErrnoToStatus(
        errno, absl::StrCat("change the access of ", FormatBytes(size)));
  }
  for (HostChunk* chunk : chunks) chunk->set_read_only(read_only);
  return absl::OkStatus();
}

absl::StatusOr<Fence> HostMapDriver::CopyOut(
    char* range, absl::Span<const ChunkHandle> handles,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, range));
  METS_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                        extents_.Resolve(slot, size));
  if (TotalSize(chunks) < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", FormatBytes(size), " out of a range with only ",
                     FormatBytes(TotalSize(chunks)), " mapped"));
  }
  return streams_.Submit(
      stream, [chunks = std::move(chunks), pieces = std::move(pieces)] {
        return ForEachStretch(
            chunks, pieces,
            [](const HostChunk& chunk, Bytes from, const Piece& piece, Bytes to,
               Bytes size) {
              const Bytes offset = piece.offset + to;
              METS_RETURN_IF_ERROR(piece.extent->Populate(offset, size));
              std::memcpy(piece.extent->base() + offset.count(),
                          chunk.alias() + from.count(), size.count());
              return absl::OkStatus();
            });
      });
}

absl::StatusOr<Fence> HostMapDriver::CopyIn(
    char* range, absl::Span<const ChunkHandle> handles,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  METS_ASSIGN_OR_RETURN(Chunks chunks, Resolve(range, handles, nullptr));
  METS_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                        extents_.Resolve(slot, size));
  if (TotalSize(chunks) < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", FormatBytes(size), " into chunks of only ",
                     FormatBytes(TotalSize(chunks))));
  }
  return streams_.Submit(stream, [this, range, chunks = std::move(chunks),
                                  pieces = std::move(pieces)] {
    return FillAndMap(range, chunks, pieces);
  });
}

absl::Status HostMapDriver::FillAndMap(char* range, const Chunks& chunks,
                                       const std::vector<Piece>& slot) {
  for (HostChunk* chunk : chunks) METS_RETURN_IF_ERROR(chunk->Populate());
  METS_RETURN_IF_ERROR(ForEachStretch(
      chunks, slot,
      [](const HostChunk& chunk, Bytes to, const Piece& piece, Bytes from,
         Bytes size) {
        const Bytes offset = piece.offset + from;
        METS_RETURN_IF_ERROR(piece.extent->Populate(offset, size));
        std::memcpy(chunk.alias() + to.count(),
                    piece.extent->base() + offset.count(), size.count());
        return absl::OkStatus();
      }));
  return MakeAccessible(range, chunks);
}

absl::Status HostMapDriver::MakeAccessible(char* range, const Chunks& chunks) {
  char* place = range;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const absl::Status moved = chunks[i]->MoveTo(place);
    if (!moved.ok()) {
      char* undo = range;
      for (size_t k = 0; k < i; ++k) {
        (void)chunks[k]->MoveBack(undo);
        undo += chunks[k]->size().count();
      }
      if (undo != range)
        METS_CHECK_OK(ranges_->Clear(range, Bytes(undo - range)));
      return moved;
    }
    place += chunks[i]->size().count();
  }
  for (HostChunk* chunk : chunks) chunk->set_place(range, true);
  return absl::OkStatus();
}

absl::Status HostMapDriver::MakeInaccessible(char* range,
                                             const Chunks& chunks) {
  if (chunks.empty() || !chunks.front()->accessible()) return absl::OkStatus();
  // Page tables travel with their access.
  if (chunks.front()->read_only()) {
    METS_RETURN_IF_ERROR(Protect(range, chunks, false));
  }
  // Until Clear, the range keeps its mappings: an error leaves them usable.
  char* place = range;
  for (HostChunk* chunk : chunks) {
    METS_RETURN_IF_ERROR(chunk->MoveBack(place));
    place += chunk->size().count();
  }
  METS_RETURN_IF_ERROR(ranges_->Clear(range, Bytes(place - range)));
  for (HostChunk* chunk : chunks) chunk->set_place(range, false);
  return absl::OkStatus();
}

absl::StatusOr<HostMapDriver::Chunks> HostMapDriver::Resolve(
    char* range, absl::Span<const ChunkHandle> handles, char* owner) {
  Chunks chunks;
  chunks.reserve(handles.size());
  {
    absl::MutexLock lock(&mutex_);
    for (ChunkHandle handle : handles) {
      auto it = chunks_.find(handle);
      if (it == chunks_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("no chunk ", static_cast<uint32_t>(handle)));
      }
      chunks.push_back(it->second.get());
    }
  }
  const Bytes total = TotalSize(chunks);
  if (!ranges_->Contains(range, total)) {
    return absl::InvalidArgumentError(absl::StrCat(
        FormatBytes(total), " of chunks do not fit into the range's region"));
  }
  for (const HostChunk* chunk : chunks) {
    if (chunk->range() == owner) continue;
    return absl::InvalidArgumentError(
        owner == nullptr ? "a chunk is mapped already"
                         : "a chunk is not mapped in this range");
  }
  return chunks;
}

absl::StatusOr<StreamHandle> HostMapDriver::CreateStream() {
  return streams_.Create();
}
absl::StatusOr<StreamHandle> HostMapDriver::AdoptStream(void* stream) {
  if (stream == nullptr) return StreamHandle::kHostOrder;
  return absl::UnimplementedError(
      "on a host device all work is in host order: the stream must be NULL");
}
void HostMapDriver::DestroyStream(StreamHandle stream) {
  streams_.Destroy(stream);
}
absl::StatusOr<Fence> HostMapDriver::Record(StreamHandle stream) {
  return streams_.Record(stream);
}
absl::StatusOr<bool> HostMapDriver::IsIdle(StreamHandle stream) {
  return streams_.IsIdle(stream);
}

absl::StatusOr<bool> HostMapDriver::Poll(Fence fence) {
  return streams_.Poll(fence);
}
absl::Status HostMapDriver::Wait(Fence fence) { return streams_.Wait(fence); }
absl::Status HostMapDriver::StreamWait(StreamHandle stream, Fence fence) {
  return streams_.StreamWait(stream, fence);
}

}  // namespace mets
