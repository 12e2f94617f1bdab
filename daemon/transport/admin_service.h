// AdminService: the gRPC service of operators.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_SERVICE_H_
#define METS_DAEMON_TRANSPORT_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/core/ports.h"
#include "daemon/transport/recordings.h"
#include "mets/v1/admin.grpc.pb.h"

namespace mets::transport {

// The core's state as the answer to GetStatus; `response` gets devices, jobs
// and the policy.
void FillStatus(const core::Status& status, v1::GetStatusResponse* response);

// Thread-safe. Sink, source, recordings and clock are borrowed. A SetLimit is
// answered when the core has decided (AnswerSetLimit); Abort answers those that
// are open.
class AdminService : public v1::AdminService::CallbackService {
 public:
  AdminService(Epoch epoch, std::string version, core::InputSink& sink,
               const core::StatusSource& status, Recordings& recordings,
               const Clock& clock);

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* SetLimit(grpc::CallbackServerContext* context,
                                     const v1::SetLimitRequest* request,
                                     v1::SetLimitResponse* response) override;

  grpc::ServerBidiReactor<v1::RecordJobRequest, v1::RecordJobReply>* RecordJob(
      grpc::CallbackServerContext* context) override;

  void AnswerSetLimit(const core::JobLimitSet& answer);
  void Abort();

 private:
  const Epoch epoch_;
  const std::string version_;
  core::InputSink& sink_;
  const core::StatusSource& status_;
  Recordings& recordings_;
  const Clock& clock_;
  const absl::Time started_;
  absl::Mutex mutex_;
  uint64_t next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint64_t, grpc::ServerUnaryReactor*> open_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_SERVICE_H_
