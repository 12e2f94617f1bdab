// AdminService: the gRPC service of operators.
#ifndef METS_DAEMON_TRANSPORT_ADMIN_ADMIN_SERVICE_H_
#define METS_DAEMON_TRANSPORT_ADMIN_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "daemon/core/ports.h"
#include "daemon/transport/admin/command_calls.h"
#include "daemon/transport/admin/event_streams.h"
#include "daemon/transport/admin/recordings.h"
#include "mets/v1/admin.grpc.pb.h"

namespace mets::transport {

// The core's state as the answer to GetStatus; `response` gets devices, jobs
// and the policy.
void FillStatus(const core::Status& status, v1::GetStatusResponse* response);

// Thread-safe. Sink, source, recordings and clock are borrowed. Commands are
// answered when the core has decided (Answer); Abort answers those that are
// open.
class AdminService : public v1::AdminService::CallbackService {
 public:
  AdminService(Epoch epoch, std::string version, core::InputSink& sink,
               const core::StatusSource& status, Recordings& recordings,
               EventStreams& events, const Clock& clock);

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* SetLimit(grpc::CallbackServerContext* context,
                                     const v1::SetLimitRequest* request,
                                     v1::SetLimitResponse* response) override;

  grpc::ServerBidiReactor<v1::RecordJobRequest, v1::RecordJobReply>* RecordJob(
      grpc::CallbackServerContext* context) override;

  // Commands to devices and jobs (admin_commands.cc).
  grpc::ServerUnaryReactor* DrainDevice(
      grpc::CallbackServerContext* context,
      const v1::DrainDeviceRequest* request,
      v1::DrainDeviceResponse* response) override;
  grpc::ServerUnaryReactor* PauseJob(grpc::CallbackServerContext* context,
                                     const v1::PauseJobRequest* request,
                                     v1::PauseJobResponse* response) override;
  grpc::ServerUnaryReactor* EvictJob(grpc::CallbackServerContext* context,
                                     const v1::EvictJobRequest* request,
                                     v1::EvictJobResponse* response) override;
  grpc::ServerUnaryReactor* KillJob(grpc::CallbackServerContext* context,
                                    const v1::KillJobRequest* request,
                                    v1::KillJobResponse* response) override;

  void Answer(const core::CommandDone& answer) { calls_.Answer(answer); }
  void Abort() { calls_.Abort(); }

  grpc::ServerWriteReactor<v1::Event>* WatchEvents(
      grpc::CallbackServerContext* context,
      const v1::WatchEventsRequest* request) override;
  grpc::ServerUnaryReactor* ExplainJob(
      grpc::CallbackServerContext* context,
      const v1::ExplainJobRequest* request,
      v1::ExplainJobResponse* response) override;

 private:
  const Epoch epoch_;
  const std::string version_;
  CommandCalls calls_;
  const core::StatusSource& status_;
  Recordings& recordings_;
  EventStreams& events_;
  const Clock& clock_;
  const absl::Time started_;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_ADMIN_ADMIN_SERVICE_H_
