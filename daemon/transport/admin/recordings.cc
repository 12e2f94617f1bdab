#include "daemon/transport/admin/recordings.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets::transport {

absl::StatusOr<uint64_t> Recordings::Begin(const std::string& job,
                                           const std::string& device,
                                           std::shared_ptr<TraceSink> sink) {
  METS_ASSIGN_OR_RETURN(const JobOnDevice found,
                        registry_.FindJob(job, device));
  Recording recording = {found.session, found.device, std::move(sink)};
  uint64_t id;
  {
    absl::MutexLock lock(&mutex_);
    if (aborted_) return absl::UnavailableError("metsd is stopping");
    for (const auto& [other, r] : recordings_) {
      if (r.session == found.session && r.device == found.device) {
        return absl::FailedPreconditionError(absl::StrCat(
            "job '", job, "' is being recorded on ", found.device, " already"));
      }
    }
    id = ++last_;
    recordings_[id] = recording;
  }
  Order(recording, id, /*on=*/true);
  return id;
}

void Recordings::Order(const Recording& recording, uint64_t id, bool on) {
  const Route route = registry_.Find(recording.session);
  if (route.stream == nullptr) {
    if (on) OnStreamEnded(recording.session);
    return;
  }
  v1::DaemonMessage message;
  message.mutable_record()->set_recording_id(id);
  message.mutable_record()->set_device(recording.device);
  message.mutable_record()->set_on(on);
  route.stream->Send(std::move(message));
}

void Recordings::Stop(uint64_t recording) {
  Recording found;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = recordings_.find(recording);
    if (it == recordings_.end()) return;
    found = it->second;
  }
  Order(found, recording, /*on=*/false);
}

void Recordings::Drop(uint64_t recording) {
  Recording found;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = recordings_.find(recording);
    if (it == recordings_.end()) return;
    found = std::move(it->second);
    recordings_.erase(it);
  }
  Order(found, recording, /*on=*/false);
}

void Recordings::OnChunk(SessionId session, const v1::TraceChunk& chunk) {
  std::shared_ptr<TraceSink> sink;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = recordings_.find(chunk.recording_id());
    if (it == recordings_.end() || it->second.session != session) return;
    sink = it->second.sink;
    if (chunk.last()) recordings_.erase(it);
  }
  if (!sink->Write(chunk.data())) {
    sink->End(absl::ResourceExhaustedError(
        "the recording came faster than it was read"));
    Drop(chunk.recording_id());
  } else if (chunk.last()) {
    sink->End(absl::OkStatus());
  }
}

void Recordings::OnStreamEnded(SessionId session) {
  std::vector<std::shared_ptr<TraceSink>> ended;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = recordings_.begin(); it != recordings_.end();) {
      const auto current = it++;
      if (current->second.session != session) continue;
      ended.push_back(std::move(current->second.sink));
      recordings_.erase(current);
    }
  }
  for (const auto& sink : ended) {
    sink->End(absl::AbortedError("the job's process has gone"));
  }
}

void Recordings::Abort() {
  absl::flat_hash_map<uint64_t, Recording> all;
  {
    absl::MutexLock lock(&mutex_);
    aborted_ = true;
    all.swap(recordings_);
  }
  for (const auto& [id, recording] : all) {
    recording.sink->End(absl::UnavailableError("metsd is stopping"));
  }
}

}  // namespace mets::transport
