#include "common/device/cuda/cuda_map_driver.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

constexpr Bytes kSmallestRegion = GiB(8);
constexpr Bytes kSlabThreshold = MiB(8);
// Larger copies are cut: a copy engine turns to another stream only at the end
// of a copy.
constexpr Bytes kLargestCopy = MiB(64);
// Between looks at a mark of time.
constexpr absl::Duration kLook = absl::Microseconds(50);

CUdeviceptr DevicePointer(const char* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaMapDriver>> CudaMapDriver::Create(
    const CudaApi& api, const CudaDevice& device, CudaMapOptions options) {
  METS_ASSIGN_OR_RETURN(std::unique_ptr<CudaContext> context,
                        CudaContext::Retain(api, device));
  const CudaContext::Scope scope(*context);
  METS_RETURN_IF_ERROR(scope.status());
  Bytes size = options.region_size.RoundUpTo(kCudaGranularity);
  CUdeviceptr begin = 0;
  for (;;) {
    const absl::Status reserved = api.cuMemAddressReserve(
        &begin, size.count(), kCudaGranularity.count(), 0, 0);
    if (reserved.ok()) break;
    if (size <= kSmallestRegion) return reserved;
    size = Bytes(size.count() / 2).RoundUpTo(kCudaGranularity);
  }
  auto driver = absl::WrapUnique(new CudaMapDriver(
      api, device, std::move(context), reinterpret_cast<char*>(begin), size));
  METS_ASSIGN_OR_RETURN(driver->out_, driver->streams_->Create());
  METS_ASSIGN_OR_RETURN(driver->in_, driver->streams_->Create());
  return driver;
}

CudaMapDriver::CudaMapDriver(const CudaApi& api, const CudaDevice& device,
                             std::unique_ptr<CudaContext> context, char* begin,
                             Bytes size)
    : api_(api),
      access_(device.Access()),
      context_(std::move(context)),
      begin_(begin),
      size_(size),
      ranges_(size, {kCudaGranularity, kCudaGranularity}),
      streams_(std::make_unique<CudaStreamSet>(api)) {}

CudaMapDriver::~CudaMapDriver() {
  const CudaContext::Scope scope(*context_);
  UnmapLeaving(/*wait=*/true);
  streams_.reset();  // Its work ends before the rest goes.
  for (const CudaKeptMapping& mapping : kept_.TakeAll()) EndKept(mapping);
  std::map<char*, Bytes> mapped;
  const std::vector<CudaChunk> chunks = chunks_.TakeAll();
  for (const CudaChunk& chunk : chunks) {
    if (chunk.range != nullptr) mapped[chunk.range] += chunk.size;
  }
  // At the end of the process the driver may have gone before.
  for (const auto& [range, size] : mapped) {
    api_.cuMemUnmap(DevicePointer(range), size.count()).IgnoreError();
  }
  for (const CudaChunk& chunk : chunks) {
    api_.cuMemRelease(chunk.memory).IgnoreError();
  }
  extents_.Clear();
  api_.cuMemAddressFree(DevicePointer(begin_), size_.count()).IgnoreError();
}

MapDriverInfo CudaMapDriver::info() const {
  return {"cuda", kCudaGranularity, kSlabThreshold, kCudaMoves,
          /*keeps_mappings=*/true};
}

absl::StatusOr<ChunkHandle> CudaMapDriver::ImportChunk(UniqueFd fd,
                                                       Bytes size) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  CUmemGenericAllocationHandle memory;
  METS_RETURN_IF_ERROR(api_.cuMemImportFromShareableHandle(
      &memory, reinterpret_cast<void*>(static_cast<intptr_t>(fd.get())),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const absl::Status checked = CheckSize(memory, size);
  if (!checked.ok()) {
    METS_RETURN_IF_ERROR(api_.cuMemRelease(memory));
    return checked;
  }
  return chunks_.Add(memory, size);
}

absl::Status CudaMapDriver::CheckSize(CUmemGenericAllocationHandle memory,
                                      Bytes size) {
  const Bytes length = size + kCudaGranularity;
  METS_ASSIGN_OR_RETURN(const uint64_t offset, ranges_.Allocate(length));
  const absl::Status checked =
      CheckChunkSize(api_, memory, size, DevicePointer(begin_ + offset));
  ranges_.Free(offset, length);
  return checked;
}

void CudaMapDriver::ForgetChunk(ChunkHandle handle) {
  {
    const CudaContext::Scope scope(*context_);
    std::vector<CudaKeptMapping> released;
    absl::MutexLock lock(&kept_mutex_);
    for (CudaKeptMapping& mapping : kept_.TakeWith(handle)) {
      if (mapping.released) {
        released.push_back(std::move(mapping));
      } else {
        EndKept(mapping);
      }
    }
    EndKeptLater(std::move(released));
  }
  UnmapLeaving(/*wait=*/true);
  const CudaChunk chunk = chunks_.Take(handle);
  if (chunk.memory != 0) api_.cuMemRelease(chunk.memory).IgnoreError();
}

absl::StatusOr<ExtentHandle> CudaMapDriver::RegisterExtent(UniqueFd fd,
                                                           Bytes size) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  METS_ASSIGN_OR_RETURN(std::unique_ptr<CudaExtent> extent,
                        CudaExtent::Register(api_, std::move(fd), size));
  return extents_.Add(std::move(extent));
}

void CudaMapDriver::ForgetExtent(ExtentHandle extent) {
  const CudaContext::Scope scope(*context_);
  extents_.Take(extent);
}

absl::StatusOr<char*> CudaMapDriver::ReserveRange(Bytes size) {
  absl::StatusOr<uint64_t> offset = ranges_.Allocate(size);
  if (!offset.ok()) {  // What is kept has the addresses.
    EndKeptLater(kept_.TakeReleased(0));
    UnmapLeaving(/*wait=*/true);
    offset = ranges_.Allocate(size);
  }
  METS_RETURN_IF_ERROR(offset.status());
  return begin_ + *offset;
}

absl::StatusOr<char*> CudaMapDriver::ReserveRangeFor(Handles handles,
                                                     Bytes size) {
  char* kept = kept_.Reserve(handles);
  if (kept != nullptr) return kept;
  return ReserveRange(size);
}

void CudaMapDriver::ReleaseRange(char* range, Bytes size) {
  if (!kept_.Release(range)) ranges_.Free(range - begin_, size);
}

absl::StatusOr<CudaChunks> CudaMapDriver::Move(char* range, Handles handles,
                                               char* from, char* to) {
  METS_ASSIGN_OR_RETURN(CudaChunks chunks, chunks_.Move(handles, from, to));
  if (range >= region_begin() && range <= region_end() &&
      chunks.size.count() <= region_end() - range) {
    return chunks;
  }
  if (to != from) METS_CHECK_OK(chunks_.Move(handles, to, from));
  return absl::InvalidArgumentError(
      absl::StrCat(FormatBytes(chunks.size),
                   " of chunks do not fit into the range's region"));
}

absl::Status CudaMapDriver::Map(char* range, Handles handles) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(range, handles, nullptr, range));
  if (TakesKept(range, handles)) return absl::OkStatus();
  const absl::Status mapped = MapChunks(range, chunks);
  if (!mapped.ok()) METS_CHECK_OK(chunks_.Move(handles, range, nullptr));
  return mapped;
}

bool CudaMapDriver::TakesKept(char* range, Handles handles) {
  absl::MutexLock lock(&kept_mutex_);
  const std::optional<CudaKeptMapping> kept = kept_.Take(range);
  if (!kept.has_value()) return false;
  if (absl::MakeSpan(kept->chunks) == handles) return true;
  EndKept(*kept);
  return false;
}

absl::Status CudaMapDriver::MapChunks(char* range, const CudaChunks& chunks) {
  if (chunks.chunks.empty()) return absl::OkStatus();
  const CUdeviceptr begin = DevicePointer(range);
  size_t mapped = 0;
  absl::Status status;
  for (const CudaChunk& chunk : chunks.chunks) {
    const size_t size = chunk.size.count();
    status = api_.cuMemMap(begin + mapped, size, 0, chunk.memory, 0);
    if (!status.ok()) break;
    mapped += size;
  }
  if (status.ok()) status = api_.cuMemSetAccess(begin, mapped, &access_, 1);
  if (!status.ok() && mapped > 0) {
    METS_CHECK_OK(api_.cuMemUnmap(begin, mapped));
  }
  return status;
}

absl::Status CudaMapDriver::Unmap(char* range, Handles handles) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(range, handles, range, nullptr));
  if (chunks.chunks.empty()) return absl::OkStatus();
  CudaKeptMapping mapping = {range,
                             chunks.size,
                             {handles.begin(), handles.end()},
                             {},
                             /*released=*/false};
  if (IsReadOnly(range)) {
    EndKept(mapping);
  } else {
    kept_.Add(std::move(mapping));
  }
  return absl::OkStatus();
}

absl::Status CudaMapDriver::UnmapAfter(absl::Span<const Fence> after,
                                       char* range, Handles handles) {
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(range, handles, range, nullptr));
  CudaKeptMapping mapping = {range,
                             chunks.size,
                             {handles.begin(), handles.end()},
                             {after.begin(), after.end()},
                             /*released=*/true};
  if (IsReadOnly(range)) {
    EndKeptLater({std::move(mapping)});
  } else {
    kept_.Add(std::move(mapping));
    EndKeptLater(kept_.TakeReleased(CudaKeptMappings::kMostReleased));
  }
  return absl::OkStatus();
}

bool CudaMapDriver::IsReadOnly(char* range) {
  absl::MutexLock lock(&read_only_mutex_);
  return read_only_.contains(range);
}

void CudaMapDriver::EndKept(const CudaKeptMapping& mapping) {
  api_.cuMemUnmap(DevicePointer(mapping.range), mapping.size.count())
      .IgnoreError();
  {
    absl::MutexLock lock(&read_only_mutex_);
    read_only_.erase(mapping.range);
  }
  if (mapping.released) ranges_.Free(mapping.range - begin_, mapping.size);
}

void CudaMapDriver::EndKeptLater(std::vector<CudaKeptMapping> mappings) {
  {
    absl::MutexLock lock(&leaving_mutex_);
    for (CudaKeptMapping& mapping : mappings) {
      leaving_.push_back(std::move(mapping));
    }
  }
  UnmapLeaving(/*wait=*/false);
}

// An error is the context's end: nothing touches the range any more.
bool CudaMapDriver::HavePassed(absl::Span<const Fence> fences) {
  return std::all_of(fences.begin(), fences.end(), [this](Fence fence) {
    const absl::StatusOr<bool> passed = Poll(fence);
    return !passed.ok() || *passed;
  });
}

void CudaMapDriver::UnmapLeaving(bool wait) {
  const CudaContext::Scope scope(*context_);
  absl::MutexLock lock(&leaving_mutex_);
  while (!leaving_.empty()) {
    const CudaKeptMapping& first = leaving_.front();
    if (wait) {
      for (Fence fence : first.after) Wait(fence).IgnoreError();
    }
    if (!HavePassed(first.after)) return;
    EndKept(first);
    leaving_.pop_front();
  }
}

void CudaMapDriver::UndoMap(char* range, Handles handles) {
  // In a context that has failed this fails, too: nobody can use the range
  // there.
  if (!Unmap(range, handles).ok()) {
    chunks_.Move(handles, range, nullptr).status().IgnoreError();
  }
}

absl::Status CudaMapDriver::BlockAccess(char* range, Handles handles) {
  return Move(range, handles, range, range).status();
}

absl::Status CudaMapDriver::AllowAccess(char* range, Handles handles) {
  return Move(range, handles, range, range).status();
}

absl::Status CudaMapDriver::SetReadOnly(char* range, Handles handles,
                                        bool read_only) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(range, handles, range, range));
  if (chunks.chunks.empty()) return absl::OkStatus();
  {
    absl::MutexLock lock(&read_only_mutex_);
    if (read_only) read_only_.insert(range);
  }
  const CUdeviceptr begin = DevicePointer(range);
  if (read_only) {
    CUmemAccessDesc access = access_;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (api_.cuMemSetAccess(begin, chunks.size.count(), &access, 1).ok()) {
      return absl::OkStatus();
    }
  }
  return api_.cuMemSetAccess(begin, chunks.size.count(), &access_, 1);
}

absl::StatusOr<Fence> CudaMapDriver::CopyOut(char* range, Handles handles,
                                             absl::Span<const ExtentPiece> slot,
                                             Bytes size, StreamHandle stream) {
  METS_ASSIGN_OR_RETURN(const Pieces pieces,
                        PiecesFor(range, handles, slot, size));
  return Copy(/*out=*/true, range, pieces, stream, [] {});
}

absl::StatusOr<CudaMapDriver::Pieces> CudaMapDriver::PiecesFor(
    char* range, Handles handles, absl::Span<const ExtentPiece> slot,
    Bytes size) {
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(range, handles, range, range));
  METS_ASSIGN_OR_RETURN(Pieces pieces, extents_.Resolve(slot, size));
  if (chunks.size < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy ", FormatBytes(size), " out of a range with only ",
                     FormatBytes(chunks.size), " mapped"));
  }
  return pieces;
}

absl::StatusOr<CudaMapDriver::Pieces> CudaMapDriver::PiecesFrom(
    Handles handles, absl::Span<const ExtentPiece> slot, Bytes size) {
  METS_ASSIGN_OR_RETURN(Pieces pieces, extents_.Resolve(slot, size));
  METS_ASSIGN_OR_RETURN(const CudaChunks chunks,
                        Move(begin_, handles, nullptr, nullptr));
  if (chunks.size < size) {
    return absl::InvalidArgumentError(absl::StrCat("copy ", FormatBytes(size),
                                                   " into chunks of only ",
                                                   FormatBytes(chunks.size)));
  }
  return pieces;
}

absl::StatusOr<Fence> CudaMapDriver::CopyIn(char* range, Handles handles,
                                            absl::Span<const ExtentPiece> slot,
                                            Bytes size, StreamHandle stream) {
  METS_ASSIGN_OR_RETURN(const Pieces pieces, PiecesFrom(handles, slot, size));
  METS_RETURN_IF_ERROR(Map(range, handles));
  std::vector<ChunkHandle> kept(handles.begin(), handles.end());
  return Copy(/*out=*/false, range, pieces, stream,
              [this, range, kept = std::move(kept)] { UndoMap(range, kept); });
}

absl::StatusOr<Fence> CudaMapDriver::Copy(bool out, char* range,
                                          const Pieces& pieces,
                                          StreamHandle stream,
                                          std::function<void()> undo) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  const bool host_order = stream == StreamHandle::kHostOrder;
  if (host_order) stream = out ? out_ : in_;
  const absl::StatusOr<CUstream> found = streams_->Find(stream);
  absl::StatusOr<Fence> fence = Fence::kPassed;
  if (!found.ok()) {
    fence = found.status();
  } else {
    const absl::Status issued = Issue(out, range, pieces, *found);
    fence = issued.ok() ? streams_->Record(stream, undo) : issued;
    // Part of it may be under way.
    if (!fence.ok()) api_.cuStreamSynchronize(*found).IgnoreError();
  }
  if (!fence.ok()) {
    undo();
    return fence;
  }
  if (!host_order) return fence;
  METS_RETURN_IF_ERROR(streams_->Wait(*fence));
  return Fence::kPassed;
}

absl::Status CudaMapDriver::Issue(bool out, char* range, const Pieces& pieces,
                                  CUstream stream) {
  for (const auto& piece : pieces) {
    for (Bytes done; done < piece.size; done += kLargestCopy) {
      const size_t size = std::min(kLargestCopy, piece.size - done).count();
      char* host = piece.extent->base() + (piece.offset + done).count();
      METS_RETURN_IF_ERROR(
          out ? api_.cuMemcpyDtoHAsync(host, DevicePointer(range), size, stream)
              : api_.cuMemcpyHtoDAsync(DevicePointer(range), host, size,
                                       stream));
      range += size;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StreamHandle> CudaMapDriver::CreateStream() {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->Create();
}

absl::StatusOr<StreamHandle> CudaMapDriver::AdoptStream(void* stream) {
  if (stream == nullptr) return StreamHandle::kHostOrder;
  return streams_->Adopt(static_cast<CUstream>(stream));
}

void CudaMapDriver::DestroyStream(StreamHandle stream) {
  const CudaContext::Scope scope(*context_);
  streams_->Destroy(stream);
}

absl::StatusOr<Fence> CudaMapDriver::Record(StreamHandle stream) {
  if (stream == StreamHandle::kHostOrder) return Fence::kPassed;
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->Record(stream);
}

absl::StatusOr<bool> CudaMapDriver::IsIdle(StreamHandle stream) {
  if (stream == StreamHandle::kHostOrder) return true;
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->IsIdle(stream);
}

absl::StatusOr<bool> CudaMapDriver::Poll(Fence fence) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->Poll(fence);
}

absl::Status CudaMapDriver::Wait(Fence fence) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->Wait(fence);
}

absl::Status CudaMapDriver::StreamWait(StreamHandle stream, Fence fence) {
  if (stream == StreamHandle::kHostOrder) {
    (void)Wait(fence);
    return absl::OkStatus();
  }
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  return streams_->StreamWait(stream, fence);
}

TimeMark CudaMapDriver::MarkTime(StreamHandle stream) {
  const CudaContext::Scope scope(*context_);
  const absl::StatusOr<CUstream> on = streams_->Find(stream);
  CUevent event = nullptr;
  if (!scope.status().ok() || !on.ok() ||
      !api_.cuEventCreate(&event, CU_EVENT_DEFAULT).ok()) {
    return nullptr;
  }
  const TimeMark mark(event, [this](void* made) {
    const CudaContext::Scope scope(*context_);
    api_.cuEventDestroy(static_cast<CUevent>(made)).IgnoreError();
  });
  return api_.cuEventRecord(event, *on).ok() ? mark : nullptr;
}

absl::StatusOr<absl::Duration> CudaMapDriver::TimeBetween(const TimeMark& from,
                                                          const TimeMark& to) {
  const CudaContext::Scope scope(*context_);
  METS_RETURN_IF_ERROR(scope.status());
  for (;;) {
    float milliseconds = 0;
    const CUresult result = api_.cuEventElapsedTime.call(
        &milliseconds, static_cast<CUevent>(from.get()),
        static_cast<CUevent>(to.get()));
    if (result != CUDA_ERROR_NOT_READY) {
      METS_RETURN_IF_ERROR(CudaStatus(result, api_.cuEventElapsedTime.name));
      return absl::Milliseconds(milliseconds);
    }
    absl::SleepFor(kLook);
  }
}

}  // namespace mets
