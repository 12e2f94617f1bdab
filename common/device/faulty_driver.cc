#include "common/device/faulty_driver.h"

#include "common/base/status_macros.h"

namespace mets {

void FaultPlan::FailNth(DriverCall call, int nth, absl::Status error) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[call];
  entry.nth[entry.calls + nth] = std::move(error);
}

void FaultPlan::FailAlways(DriverCall call, absl::Status error) {
  absl::MutexLock lock(&mutex_);
  entries_[call].always = std::move(error);
}

void FaultPlan::Clear() {
  absl::MutexLock lock(&mutex_);
  for (auto& [call, entry] : entries_) {
    entry.nth.clear();
    entry.always = absl::OkStatus();
  }
}

int FaultPlan::failures(DriverCall call) const {
  absl::MutexLock lock(&mutex_);
  auto it = entries_.find(call);
  return it == entries_.end() ? 0 : it->second.failures;
}

absl::Status FaultPlan::Next(DriverCall call) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[call];
  absl::Status error = entry.always;
  auto it = entry.nth.find(++entry.calls);
  if (it != entry.nth.end()) {
    error = it->second;
    entry.nth.erase(it);
  }
  if (!error.ok()) ++entry.failures;
  return error;
}

absl::StatusOr<UniqueFd> FaultyPoolDriver::CreateChunk(Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kCreateChunk));
  return inner_->CreateChunk(size);
}
absl::StatusOr<UniqueFd> FaultyPoolDriver::AdoptChunk(UniqueFd fd, Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kAdoptChunk));
  return inner_->AdoptChunk(std::move(fd), size);
}
absl::Status FaultyPoolDriver::ReleaseChunk(UniqueFd fd) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kReleaseChunk));
  return inner_->ReleaseChunk(std::move(fd));
}
absl::StatusOr<UniqueFd> FaultyPoolDriver::AdoptExtent(UniqueFd fd,
                                                       Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kAdoptExtent));
  return inner_->AdoptExtent(std::move(fd), size);
}

absl::StatusOr<UniqueFd> FaultyPoolDriver::CreateExtent(Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kCreateExtent));
  return inner_->CreateExtent(size);
}
absl::StatusOr<Bytes> FaultyPoolDriver::FreeBytes() const {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kFreeBytes));
  return inner_->FreeBytes();
}

absl::StatusOr<ChunkHandle> FaultyMapDriver::ImportChunk(UniqueFd fd,
                                                         Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kImportChunk));
  return inner().ImportChunk(std::move(fd), size);
}
absl::StatusOr<ExtentHandle> FaultyMapDriver::RegisterExtent(UniqueFd fd,
                                                             Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kRegisterExtent));
  return inner().RegisterExtent(std::move(fd), size);
}
absl::StatusOr<char*> FaultyMapDriver::ReserveRange(Bytes size) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kReserveRange));
  return inner().ReserveRange(size);
}
absl::Status FaultyMapDriver::Map(char* range,
                                  absl::Span<const ChunkHandle> chunks) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kMap));
  return inner().Map(range, chunks);
}
absl::Status FaultyMapDriver::Unmap(char* range,
                                    absl::Span<const ChunkHandle> chunks) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kUnmap));
  return inner().Unmap(range, chunks);
}
absl::Status FaultyMapDriver::BlockAccess(
    char* range, absl::Span<const ChunkHandle> chunks) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kBlockAccess));
  return inner().BlockAccess(range, chunks);
}
absl::Status FaultyMapDriver::AllowAccess(
    char* range, absl::Span<const ChunkHandle> chunks) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kAllowAccess));
  return inner().AllowAccess(range, chunks);
}

absl::StatusOr<Fence> FaultyMapDriver::CopyOut(
    char* range, absl::Span<const ChunkHandle> chunks,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kCopyOut));
  absl::Status error = plan_.Next(DriverCall::kCopyOutOnStream);
  if (!error.ok()) return FailOnStream(stream, std::move(error));
  return inner().CopyOut(range, chunks, slot, size, stream);
}
absl::StatusOr<Fence> FaultyMapDriver::CopyIn(
    char* range, absl::Span<const ChunkHandle> chunks,
    absl::Span<const ExtentPiece> slot, Bytes size, StreamHandle stream) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kCopyIn));
  absl::Status error = plan_.Next(DriverCall::kCopyInOnStream);
  if (!error.ok()) return FailOnStream(stream, std::move(error));
  return inner().CopyIn(range, chunks, slot, size, stream);
}

absl::StatusOr<StreamHandle> FaultyMapDriver::CreateStream() {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kCreateStream));
  return inner().CreateStream();
}
absl::StatusOr<Fence> FaultyMapDriver::Record(StreamHandle stream) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kRecord));
  return inner().Record(stream);
}
absl::StatusOr<bool> FaultyMapDriver::Poll(Fence fence) {
  METS_ASSIGN_OR_RETURN(const bool passed, inner().Poll(fence));
  if (passed) METS_RETURN_IF_ERROR(ErrorOf(fence));
  return passed;
}
absl::Status FaultyMapDriver::Wait(Fence fence) {
  METS_RETURN_IF_ERROR(inner().Wait(fence));
  return ErrorOf(fence);
}
absl::Status FaultyMapDriver::StreamWait(StreamHandle stream, Fence fence) {
  METS_RETURN_IF_ERROR(plan_.Next(DriverCall::kStreamWait));
  return inner().StreamWait(stream, fence);
}

absl::StatusOr<Fence> FaultyMapDriver::FailOnStream(StreamHandle stream,
                                                    absl::Status error) {
  if (stream == StreamHandle::kHostOrder) return error;
  METS_ASSIGN_OR_RETURN(const Fence fence, inner().Record(stream));
  absl::MutexLock lock(&mutex_);
  failed_[fence] = std::move(error);
  return fence;
}

absl::Status FaultyMapDriver::ErrorOf(Fence fence) {
  absl::MutexLock lock(&mutex_);
  auto it = failed_.find(fence);
  return it == failed_.end() ? absl::OkStatus() : it->second;
}

}  // namespace mets
