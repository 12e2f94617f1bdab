#include "daemon/transport/sessions/session_stream.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/transport/sessions/from_client.h"

namespace mets::transport {

SessionStream* SessionStream::Start(SessionService& service,
                                    grpc::CallbackServerContext* context) {
  std::shared_ptr<SessionStream> stream(new SessionStream(service, context));
  stream->self_ = stream;
  stream->ArmHelloTimeout();
  stream->StartRead(&stream->received_);
  return stream.get();
}

SessionStream::SessionStream(SessionService& service,
                             grpc::CallbackServerContext* context)
    : service_(service),
      context_(context),
      rate_(service.options().rate, service.options().burst),
      outbox_(service.options().outbox_capacity) {}

void SessionStream::ArmHelloTimeout() {
  hello_timeout_.Set(
      absl::ToChronoTime(absl::Now() + service_.options().hello_timeout),
      [weak = weak_from_this()](bool) {
        const std::shared_ptr<SessionStream> stream = weak.lock();
        if (stream == nullptr) return;
        absl::MutexLock lock(&stream->mutex_);
        if (stream->session_.ok()) return;
        stream->CloseLocked(
            absl::DeadlineExceededError("no Hello within the time allowed"));
      });
}

void SessionStream::Send(v1::DaemonMessage message) {
  absl::MutexLock lock(&mutex_);
  if (closing_) return;
  if (!outbox_.Push(std::move(message))) {
    service_.CountUnresponsive();
    CloseLocked(absl::ResourceExhaustedError(
        absl::StrCat("this client does not read: ", outbox_.size(),
                     " messages wait for it")));
    // The write under way may never end by itself.
    context_->TryCancel();
    return;
  }
  if (!writing_) WriteNext();
}

void SessionStream::Close(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  CloseLocked(std::move(status));
}

void SessionStream::CloseLocked(absl::Status status) {
  if (closing_) return;
  closing_ = true;
  status_ = std::move(status);
  if (!writing_) WriteNext();
}

void SessionStream::WriteNext() {
  if (!outbox_.empty()) {
    outgoing_.Clear();
    bool own_buffer;
    grpc::SerializationTraits<v1::DaemonMessage>::Serialize(
        outbox_.Pop(), &outgoing_, &own_buffer);
    writing_ = true;
    StartWrite(&outgoing_);
    return;
  }
  if (closing_ && !finished_) {
    finished_ = true;
    Finish(ToGrpc(status_));
  }
}

void SessionStream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) {
    while (!outbox_.empty()) outbox_.Pop();
    CloseLocked(absl::UnavailableError("the client has gone"));
  }
  WriteNext();
}

void SessionStream::OnCancel() {
  absl::MutexLock lock(&mutex_);
  while (!outbox_.empty()) outbox_.Pop();
  CloseLocked(absl::CancelledError("the client has gone"));
}

void SessionStream::OnReadDone(bool ok) {
  if (!ok) {
    Close(absl::OkStatus());
    return;
  }
  const double cost = 1 + static_cast<double>(received_.Length()) / 4096;
  if (!Parse()) return;
  bool attached;
  {
    absl::MutexLock lock(&mutex_);
    attached = session_.ok();
  }
  if (!(attached ? HandleMessage() : HandleHello())) return;
  const absl::Duration wait = rate_.Use(service_.clock().Now(), cost);
  if (wait == absl::ZeroDuration()) {
    ReadNext();
    return;
  }
  resume_read_.Set(absl::ToChronoTime(absl::Now() + wait),
                   [weak = weak_from_this()](bool) {
                     const std::shared_ptr<SessionStream> stream = weak.lock();
                     if (stream != nullptr) stream->ReadNext();
                   });
}

void SessionStream::ReadNext() {
  absl::MutexLock lock(&mutex_);
  if (!finished_) StartRead(&received_);
}

bool SessionStream::Parse() {
  const size_t size = received_.Length();
  const bool parsed = grpc::SerializationTraits<v1::ClientMessage>::Deserialize(
                          &received_, &incoming_)
                          .ok();
  if (!parsed) {
    Close(absl::InvalidArgumentError(absl::StrCat(
        "metsd cannot read a message of ", size,
        " bytes: it is not one of session.proto's ClientMessage; use libmets "
        "and metsd of the same release")));
  }
  return parsed;
}

bool SessionStream::HandleHello() {
  absl::Status status =
      absl::InvalidArgumentError("the first message must be a Hello");
  if (incoming_.has_hello()) status = CheckHello(incoming_.hello());
  if (status.ok()) {
    const absl::StatusOr<SessionId> session =
        service_.registry().Attach(incoming_.hello(), shared_from_this());
    status = session.status();
    if (status.ok()) {
      // No recording outlives its stream.
      service_.recordings().OnStreamEnded(*session);
      absl::MutexLock lock(&mutex_);
      session_ = *session;
    }
  }
  if (!status.ok()) Close(status);
  return status.ok();
}

bool SessionStream::HandleMessage() {
  SessionId session;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
  }
  if (incoming_.has_trace_chunk()) {
    service_.recordings().OnChunk(session, incoming_.trace_chunk());
    return true;
  }
  absl::StatusOr<std::optional<core::Input>> input =
      FromClient(incoming_, session, service_.options().epoch);
  if (!input.ok()) {
    Close(input.status());
    return false;
  }
  if (input->has_value()) {
    service_.registry().PostFrom(this, session, *std::move(*input));
  }
  return true;
}

void SessionStream::OnDone() {
  SessionId session;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
  }
  if (session.ok() && service_.registry().Detach(this, session)) {
    service_.recordings().OnStreamEnded(session);
  }
  SessionService& service = service_;
  self_.reset();  // Perhaps the last owner.
  service.StreamEnded();
}

}  // namespace mets::transport
