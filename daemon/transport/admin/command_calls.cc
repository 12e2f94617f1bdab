#include "daemon/transport/admin/command_calls.h"

#include <utility>

#include "daemon/transport/sessions/session_service.h"

namespace mets::transport {

bool CommandCalls::Register(grpc::ServerUnaryReactor* reactor,
                            const absl::Status& valid, Fill fill) {
  absl::Status status = valid;
  if (aborted_) status = absl::UnavailableError("metsd is stopping");
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return false;
  }
  open_[next_call_++] = {reactor, std::move(fill)};
  return true;
}

void CommandCalls::Answer(const core::CommandDone& answer) {
  absl::MutexLock lock(&mutex_);
  const auto it = open_.find(answer.call);
  if (it == open_.end()) return;
  if (it->second.fill != nullptr) it->second.fill(answer);
  it->second.reactor->Finish(ToGrpc(answer.status));
  open_.erase(it);
}

void CommandCalls::Abort() {
  absl::MutexLock lock(&mutex_);
  aborted_ = true;
  for (auto& [number, call] : open_) {
    call.reactor->Finish(ToGrpc(absl::UnavailableError("metsd is stopping")));
  }
  open_.clear();
}

}  // namespace mets::transport
