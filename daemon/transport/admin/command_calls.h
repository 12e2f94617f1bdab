// CommandCalls: operators' calls that the core has not answered yet.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_COMMAND_CALLS_H_
#define METS_DAEMON_TRANSPORT_ADMIN_COMMAND_CALLS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/ports.h"

namespace mets::transport {

// Numbers calls, posts their inputs, and finishes each when its answer comes.
// Thread-safe. The sink is borrowed; calls that are open must be aborted before
// the server of their contexts goes.
class CommandCalls {
 public:
  explicit CommandCalls(core::InputSink& sink) : sink_(sink) {}

  // Puts what the answer says into the response, before the call finishes.
  using Fill = std::function<void(const core::CommandDone&)>;

  // Begins a call: posts `input`, whose `call` is set. Not `valid`: it fails at
  // once with that.
  template <typename Input>
  grpc::ServerUnaryReactor* Begin(grpc::CallbackServerContext* context,
                                  const absl::Status& valid, Input input,
                                  Fill fill = nullptr) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::MutexLock lock(&mutex_);
    if (!Register(reactor, valid, std::move(fill))) return reactor;
    input.call = next_call_ - 1;
    sink_.Post(std::move(input));
    return reactor;
  }

  void Answer(const core::CommandDone& answer);
  // Fails the calls that are open, and all later ones.
  void Abort();

 private:
  struct Call {
    grpc::ServerUnaryReactor* reactor;
    Fill fill;
  };

  bool Register(grpc::ServerUnaryReactor* reactor, const absl::Status& valid,
                Fill fill) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  core::InputSink& sink_;
  absl::Mutex mutex_;
  uint64_t next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint64_t, Call> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_COMMAND_CALLS_H_
