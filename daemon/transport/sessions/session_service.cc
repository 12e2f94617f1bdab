#include "daemon/transport/sessions/session_service.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "daemon/transport/sessions/session_stream.h"

namespace mets::transport {
namespace {

// Ends a call at once.
class RefusedStream : public SessionCall {
 public:
  explicit RefusedStream(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

SessionService::SessionService(SessionServiceOptions options,
                               SessionRegistry& registry,
                               Recordings& recordings, const Clock& clock)
    : options_(options),
      registry_(registry),
      recordings_(recordings),
      clock_(clock) {}

SessionCall* SessionService::Connect(grpc::CallbackServerContext* context) {
  {
    absl::MutexLock lock(&mutex_);
    if (streams_ >= options_.max_streams) {
      return new RefusedStream(
          grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                       "metsd has too many streams; try again later"));
    }
    ++streams_;
  }
  return SessionStream::Start(*this, context);
}

void SessionService::StreamEnded() {
  absl::MutexLock lock(&mutex_);
  --streams_;
}

void SessionService::CountUnresponsive() {
  absl::MutexLock lock(&mutex_);
  ++unresponsive_;
}

int64_t SessionService::unresponsive_total() const {
  absl::MutexLock lock(&mutex_);
  return unresponsive_;
}

bool SessionService::AwaitNoStreams(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return streams_ == 0;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&none), time);
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace mets::transport
