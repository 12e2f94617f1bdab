// AdminService: what operators command.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/job_name.h"
#include "daemon/transport/admin/admin_service.h"
#include "daemon/transport/sessions/device_name.h"

namespace mets::transport {
namespace {

constexpr double kLongestGraceSeconds = 3600;

absl::Status CheckLimit(const v1::SetLimitRequest& request) {
  if (request.limit_bytes() > uint64_t{1} << 62) {
    return absl::InvalidArgumentError(absl::StrCat(
        "limit_bytes = ", request.limit_bytes(), " is no amount of memory"));
  }
  return ValidateJobName(request.job());
}

absl::Status CheckKill(const v1::KillJobRequest& request) {
  if (!(request.grace_seconds() >= 0 &&
        request.grace_seconds() <= kLongestGraceSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrCat("grace_seconds = ", request.grace_seconds(),
                     " is not between 0 and ", kLongestGraceSeconds));
  }
  return ValidateJobName(request.job());
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::SetLimit(
    grpc::CallbackServerContext* context, const v1::SetLimitRequest* request,
    v1::SetLimitResponse*) {
  core::SetJobLimit input;
  const absl::Status valid = CheckLimit(*request);
  input.job = request->job();
  if (valid.ok()) {
    input.limit = Bytes(static_cast<int64_t>(request->limit_bytes()));
  }
  return calls_.Begin(context, valid, std::move(input));
}

grpc::ServerUnaryReactor* AdminService::DrainDevice(
    grpc::CallbackServerContext* context, const v1::DrainDeviceRequest* request,
    v1::DrainDeviceResponse*) {
  return calls_.Begin(context, CheckDeviceName(request->device()),
                      core::DrainDevice{request->device(), request->drain()});
}

grpc::ServerUnaryReactor* AdminService::PauseJob(
    grpc::CallbackServerContext* context, const v1::PauseJobRequest* request,
    v1::PauseJobResponse*) {
  return calls_.Begin(context, ValidateJobName(request->job()),
                      core::PauseJob{request->job(), request->pause()});
}

grpc::ServerUnaryReactor* AdminService::EvictJob(
    grpc::CallbackServerContext* context, const v1::EvictJobRequest* request,
    v1::EvictJobResponse* response) {
  return calls_.Begin(context, ValidateJobName(request->job()),
                      core::EvictJob{request->job()},
                      [response](const core::CommandDone& done) {
                        response->set_evicted_bytes(done.evicted.count());
                        response->set_left_bytes(done.left.count());
                      });
}

grpc::ServerUnaryReactor* AdminService::KillJob(
    grpc::CallbackServerContext* context, const v1::KillJobRequest* request,
    v1::KillJobResponse* response) {
  core::KillJob input;
  const absl::Status valid = CheckKill(*request);
  input.job = request->job();
  if (valid.ok()) input.grace = absl::Seconds(request->grace_seconds());
  return calls_.Begin(context, valid, std::move(input),
                      [response](const core::CommandDone& done) {
                        response->set_processes(done.processes);
                      });
}

}  // namespace mets::transport
