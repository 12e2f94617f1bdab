// Recordings of a device: to a file of this process, or to the daemon.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/device.h"
#include "common/base/status_macros.h"
#include "common/trace/trace_format.h"

namespace mets::client {
namespace {

v1::ClientMessage TracePart(uint64_t recording, Recorder::Part part) {
  v1::ClientMessage message;
  v1::TraceChunk* chunk = message.mutable_trace_chunk();
  chunk->set_recording_id(recording);
  chunk->set_data(std::move(part.text));
  chunk->set_last(part.last);
  return message;
}

}  // namespace

void Device::TellLive(bool slabs,
                      absl::FunctionRef<void(uint64_t, Bytes)> tell) {
  for (const Buffer& buffer : buffers_.all()) {
    if (buffer.word.phase() == Phase::kFree || buffer.word.freed() ||
        (!slabs && buffer.slab.load(std::memory_order_relaxed) != nullptr)) {
      continue;
    }
    tell(BufferPool::IdOf(buffer), Bytes(static_cast<int64_t>(buffer.bytes)));
  }
}

absl::Status Device::StartRecorder() {
  // Whoever allocates waits; whoever frees waits for the recorder.
  absl::MutexLock lock(&mutex_);
  return recorder_.Start(options_.job,
                         [this](const Recorder::AddLive& add)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                               TellLive(/*slabs=*/true, add);
                             });
}

absl::Status Device::StartRecording(const std::string& path) {
  absl::MutexLock lock(&record_mutex_);
  if (record_file_ != nullptr) {
    return absl::FailedPreconditionError("a recording of this device runs");
  }
  METS_RETURN_IF_ERROR(StartRecorder());
  absl::StatusOr<std::unique_ptr<RecordFile>> file =
      RecordFile::Open(path, recorder_);
  if (file.ok()) {
    record_file_ = *std::move(file);
    return absl::OkStatus();
  }
  recorder_.Discard();
  return file.status();
}

absl::Status Device::StopRecording() {
  absl::MutexLock lock(&record_mutex_);
  if (record_file_ == nullptr) {
    return absl::FailedPreconditionError("no recording to a file runs");
  }
  const absl::Status status = record_file_->Finish();
  record_file_ = nullptr;
  return status;
}

void Device::OnRecord(const v1::Record& record) {
  absl::MutexLock lock(&record_mutex_);
  if (!record.on()) {
    if (recording_id_ == record.recording_id()) recorder_.Stop();
    return;
  }
  const absl::Status status = StartRecorder();
  if (status.ok()) {
    recording_id_ = record.recording_id();
    return;
  }
  uplink_.Send(TracePart(record.recording_id(),
                         {trace::FormatError(status.message()), true, ""}));
}

void Device::SendRecording() {
  absl::MutexLock lock(&record_mutex_);
  while (recording_id_ != 0) {
    Recorder::Part part = recorder_.Take();
    if (part.text.empty() && !part.last) return;
    const bool last = part.last;
    uplink_.Send(TracePart(recording_id_, std::move(part)));
    if (last) recording_id_ = 0;
  }
}

bool Device::EndRecordings() {
  bool sending;
  {
    absl::MutexLock lock(&record_mutex_);
    record_file_ = nullptr;
    sending = recording_id_ != 0;
  }
  recorder_.Stop();
  SendRecording();
  return sending;
}

void Device::BreakRecording() {
  absl::MutexLock lock(&record_mutex_);
  if (recording_id_ == 0) return;
  recorder_.Discard();
  recording_id_ = 0;
}

uint64_t Device::RecordBegin(const char* name, const mets_access* accesses,
                             size_t count) {
  std::vector<Recorder::Access> found;
  for (size_t i = 0; i < count; ++i) {
    const mets_access& access = accesses[i];
    if (access.kind == METS_NEW || !table_->Owns(access.address)) continue;
    const Buffer* buffer = table_->Find(access.address);  // Pinned.
    if (buffer == nullptr) continue;
    const uint64_t id = BufferPool::IdOf(*buffer);
    const bool write = access.kind != METS_READ;
    bool known = false;
    for (Recorder::Access& earlier : found) {
      if (earlier.id != id) continue;
      earlier.write |= write;
      known = true;
    }
    if (!known) found.push_back({id, write});
  }
  return recorder_.BeginOp(name, found.data(), found.size());
}

}  // namespace mets::client
