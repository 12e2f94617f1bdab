#include "client/src/share_table.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"

namespace mets::client {
namespace {

absl::Status StatusOf(const v1::ShareAnswer& answer) {
  const std::string& reason = answer.reason();
  switch (answer.outcome()) {
    case v1::SHARE_OUTCOME_DONE:
      return absl::OkStatus();
    case v1::SHARE_OUTCOME_BAD:
      return absl::InvalidArgumentError(reason);
    case v1::SHARE_OUTCOME_UNKNOWN:
      return absl::NotFoundError(reason);
    case v1::SHARE_OUTCOME_EXISTS:
      return absl::AlreadyExistsError(reason);
    case v1::SHARE_OUTCOME_REFUSED:
      return absl::FailedPreconditionError(reason);
    default:
      return absl::InternalError("metsd's answer is of another version");
  }
}

}  // namespace

absl::Status ShareTable::Ask(Device& device, v1::ClientMessage message,
                             Take take) {
  absl::MutexLock lock(&mutex_);
  const uint64_t id = next_id_++;
  Request& request = requests_[id];
  request.message = std::move(message);
  if (request.message.has_publish_share()) {
    request.message.mutable_publish_share()->set_request_id(id);
  } else {
    request.message.mutable_attach_share()->set_request_id(id);
  }
  if (open_) SendRequest(request);
  absl::Status status;
  for (;;) {
    status = AwaitAnswer(request);
    if (!status.ok()) break;
    const v1::ShareAnswer answer = request.answer;
    importer_.Begin();
    mutex_.Unlock();
    status = importer_.Import(device, answer.chunks(), answer.fd_seq());
    mutex_.Lock();
    importer_.End();
    if (!request.answered) continue;  // The stream broke: it is void.
    if (status.ok()) status = take(answer);
    if (status.ok() || open_) break;
    request.answered = false;
  }
  requests_.erase(id);
  return status;
}

absl::Status ShareTable::AwaitAnswer(const Request& request) {
  for (;;) {
    if (request.answered) return StatusOf(request.answer);
    if (!ended_.ok()) return ended_;
    if (Stale(request)) {
      return absl::UnavailableError(
          "metsd was restarted before it could publish the buffer; copy it "
          "into a new one and publish that");
    }
    changed_.Wait(&mutex_);
  }
}

bool ShareTable::Stale(const Request& request) const {
  return request.message.has_publish_share() && request.epoch != 0 &&
         request.epoch != epoch_;
}

void ShareTable::SendRequest(Request& request) {
  if (Stale(request)) return;
  request.epoch = epoch_;
  send_(request.message);
}

void ShareTable::OnAnswer(const v1::ShareAnswer& answer) {
  absl::MutexLock lock(&mutex_);
  const auto it = requests_.find(answer.request_id());
  if (it == requests_.end()) return;
  it->second.answered = true;
  it->second.answer = answer;
  changed_.SignalAll();
}

void ShareTable::OnBroken() {
  absl::MutexLock lock(&mutex_);
  open_ = false;
  for (auto& [id, request] : requests_) request.answered = false;
}

void ShareTable::OnOpen(uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  open_ = true;
  epoch_ = epoch;
  for (auto& [id, request] : requests_) SendRequest(request);
  changed_.SignalAll();
}

void ShareTable::OnEnded(absl::Status why) {
  absl::MutexLock lock(&mutex_);
  ended_ = std::move(why);
  open_ = false;
  changed_.SignalAll();
}

}  // namespace mets::client
