#include "daemon/transport/admin/record_call.h"

#include <utility>

#include "common/base/job_name.h"
#include "daemon/transport/sessions/session_service.h"

namespace mets::transport {
namespace {

constexpr Bytes kMaxQueued = MiB(64);

}  // namespace

RecordCall* RecordCall::Start(Recordings& recordings) {
  std::shared_ptr<RecordCall> call(new RecordCall(recordings));
  call->self_ = call;
  call->StartRead(&call->request_);
  return call.get();
}

void RecordCall::OnReadDone(bool ok) {
  uint64_t recording;
  {
    absl::MutexLock lock(&mutex_);
    recording = recording_;
  }
  if (!ok && recording != 0) return recordings_.Stop(recording);
  if (!ok) return End(absl::InvalidArgumentError("no request"));
  absl::Status status =
      absl::InvalidArgumentError("a second request on one call");
  if (recording == 0) {
    status = ValidateJobName(request_.job());
    if (status.ok()) {
      const absl::StatusOr<uint64_t> begun = recordings_.Begin(
          request_.job(), request_.device(), shared_from_this());
      status = begun.status();
      if (begun.ok()) {
        absl::MutexLock lock(&mutex_);
        recording_ = *begun;
      }
    }
  }
  if (!status.ok()) return End(status);
  absl::MutexLock lock(&mutex_);
  if (!finished_) StartRead(&request_);
}

bool RecordCall::Write(std::string data) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return true;
  const Bytes size(static_cast<int64_t>(data.size()));
  if (queued_ + size > kMaxQueued) return false;
  queued_ += size;
  queue_.push_back(std::move(data));
  if (!writing_) WriteNext();
  return true;
}

void RecordCall::End(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  ending_ = true;
  status_ = std::move(status);
  if (!writing_) WriteNext();
}

void RecordCall::WriteNext() {
  if (!queue_.empty()) {
    queued_ -= Bytes(static_cast<int64_t>(queue_.front().size()));
    outgoing_.set_data(std::move(queue_.front()));
    queue_.pop_front();
    writing_ = true;
    StartWrite(&outgoing_);
  } else if (ending_ && !finished_) {
    finished_ = true;
    Finish(ToGrpc(status_));
  }
}

void RecordCall::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) {
    queue_.clear();
    ending_ = true;
  }
  WriteNext();
}

void RecordCall::OnCancel() {
  uint64_t recording;
  {
    absl::MutexLock lock(&mutex_);
    recording = recording_;
    queue_.clear();
  }
  if (recording != 0) recordings_.Drop(recording);
  End(absl::CancelledError("the operator has gone"));
}

void RecordCall::OnDone() {
  uint64_t recording;
  {
    absl::MutexLock lock(&mutex_);
    recording = recording_;
  }
  if (recording != 0) recordings_.Drop(recording);
  self_.reset();  // Perhaps the last owner.
}

}  // namespace mets::transport
