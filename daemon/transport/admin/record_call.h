// RecordCall: one operator's RecordJob.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_RECORD_CALL_H_
#define METS_DAEMON_TRANSPORT_ADMIN_RECORD_CALL_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"
#include "daemon/transport/admin/recordings.h"
#include "mets/v1/admin.pb.h"

namespace mets::transport {

// Reads the request, begins the recording, and writes what comes. A half-close
// ends the recording, a cancelled call drops it.
//
// Owns itself until gRPC says OnDone; Recordings shares it. Thread-safe.
class RecordCall
    : public grpc::ServerBidiReactor<v1::RecordJobRequest, v1::RecordJobReply>,
      public TraceSink,
      public std::enable_shared_from_this<RecordCall> {
 public:
  // `recordings` outlives the call.
  static RecordCall* Start(Recordings& recordings);

  // TraceSink.
  bool Write(std::string data) override;
  void End(absl::Status status) override;

  // ServerBidiReactor.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit RecordCall(Recordings& recordings) : recordings_(recordings) {}

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Recordings& recordings_;
  std::shared_ptr<RecordCall> self_;  // Until OnDone.
  v1::RecordJobRequest request_;      // Of one reaction at a time.

  absl::Mutex mutex_;
  uint64_t recording_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not begun.
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);
  Bytes queued_ ABSL_GUARDED_BY(mutex_);
  v1::RecordJobReply outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_RECORD_CALL_H_
