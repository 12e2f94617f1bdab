#include "client/ctl/admin_client.h"

#include <errno.h>
#include <grp.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/ipc/socket_file.h"

namespace mets::ctl {
namespace {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::DeadlineExceededError(
        "metsd does not answer: it hangs, is stopped (SIGSTOP) or has much to "
        "do; look at its log (journalctl -u metsd)");
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      status.error_message() != "metsd is stopping") {
    return absl::UnavailableError(absl::StrCat(
        "metsd has closed the connection: it has ended, or this user has as "
        "many connections to admin.sock as metsd lets one have (a quarter of "
        "the descriptors that it may have, at most 1280); close some (metsctl "
        "top, events --follow), try again (",
        status.error_message(), ")"));
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

void SetDeadline(grpc::ClientContext* context, int seconds = 10) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::seconds(seconds));
}

absl::Status NotRunning(const std::string& run_dir) {
  return absl::UnavailableError(absl::StrCat(
      "metsd is not running in ", run_dir, "; start it with: metsd --run-dir ",
      run_dir, " (or name another directory with --run-dir or METS_RUN_DIR)"));
}

// A listener of metsd's that is for jobs alone, for instance in a container.
absl::Status NotHere(const std::string& run_dir, const std::string& name) {
  return absl::UnavailableError(absl::StrCat(
      run_dir, " has sockets for jobs, and no ", name,
      ": administer metsd from its own directory (--run-dir, METS_RUN_DIR)"));
}

absl::Status NotAllowed(const std::string& path) {
  struct stat info;
  std::string owner = "its owner";
  if (stat(path.c_str(), &info) == 0) {
    const group* entry = getgrgid(info.st_gid);
    owner = (info.st_mode & S_IWGRP) == 0 ? "root, or the user who started it,"
            : entry == nullptr
                ? absl::StrCat("group ", info.st_gid)
                : absl::StrCat("group '", std::string(entry->gr_name), "'");
  }
  return absl::PermissionDeniedError(
      absl::StrCat("no permission to use ", path, ": only ", owner, " may"));
}

}  // namespace

std::string FindRunDir(const std::string& given) {
  if (!given.empty()) return given;
  const char* from_environment = std::getenv("METS_RUN_DIR");
  if (from_environment != nullptr && *from_environment != '\0') {
    return from_environment;
  }
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0 && runtime_dir != nullptr && *runtime_dir != '\0') {
    return absl::StrCat(runtime_dir, "/mets");
  }
  return "/run/mets";
}

absl::Status CheckSocket(const std::string& run_dir, const std::string& name) {
  const std::string path = absl::StrCat(run_dir, "/", name);
  METS_ASSIGN_OR_RETURN(const sockaddr_un address, ipc::SocketAddress(path));
  const int type = name == "fd.sock" ? SOCK_SEQPACKET : SOCK_STREAM;
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoToStatus(errno, "socket");
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    return absl::OkStatus();
  }
  if (errno == EACCES || errno == EPERM) return NotAllowed(path);
  if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR) {
    const bool others = name == "admin.sock" && errno == ENOENT &&
                        CheckSocket(run_dir, "fd.sock").ok();
    return others ? NotHere(run_dir, name) : NotRunning(run_dir);
  }
  return ErrnoToStatus(errno, absl::StrCat("connect to ", path));
}

absl::StatusOr<AdminClient> AdminClient::Connect(const std::string& run_dir) {
  METS_RETURN_IF_ERROR(CheckSocket(run_dir, "admin.sock"));
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateChannel(absl::StrCat("unix:", run_dir, "/admin.sock"),
                          grpc::InsecureChannelCredentials());
  return AdminClient(v1::AdminService::NewStub(channel));
}

bool AdminClient::RecordStream::Read(std::string* text) {
  v1::RecordJobReply reply;
  if (!stream_->Read(&reply)) return false;
  *text = std::move(*reply.mutable_data());
  return true;
}

void AdminClient::RecordStream::Stop() {
  if (!stopped_.exchange(true)) stream_->WritesDone();
}

absl::Status AdminClient::RecordStream::Finish() {
  v1::RecordJobReply rest;
  while (stream_->Read(&rest)) {
  }
  return FromGrpc(stream_->Finish());
}

std::unique_ptr<AdminClient::RecordStream> AdminClient::RecordJob(
    const std::string& job, const std::string& device) {
  auto record = std::make_unique<RecordStream>();
  record->stream_ = stub_->RecordJob(&record->context_);
  v1::RecordJobRequest request;
  request.set_job(job);
  request.set_device(device);
  record->stream_->Write(request);  // A failure shows in Finish.
  return record;
}

absl::StatusOr<v1::GetStatusResponse> AdminClient::GetStatus() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::GetStatusResponse response;
  METS_RETURN_IF_ERROR(FromGrpc(stub_->GetStatus(&context, {}, &response)));
  return response;
}

absl::Status AdminClient::SetLimit(const std::string& job, Bytes limit) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::SetLimitRequest request;
  request.set_job(job);
  request.set_limit_bytes(limit.count());
  v1::SetLimitResponse response;
  return FromGrpc(stub_->SetLimit(&context, request, &response));
}

absl::Status AdminClient::DrainDevice(const std::string& device, bool drain) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::DrainDeviceRequest request;
  request.set_device(device);
  request.set_drain(drain);
  v1::DrainDeviceResponse response;
  return FromGrpc(stub_->DrainDevice(&context, request, &response));
}

absl::Status AdminClient::PauseJob(const std::string& job, bool pause) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PauseJobRequest request;
  request.set_job(job);
  request.set_pause(pause);
  v1::PauseJobResponse response;
  return FromGrpc(stub_->PauseJob(&context, request, &response));
}

absl::StatusOr<v1::EvictJobResponse> AdminClient::EvictJob(
    const std::string& job) {
  grpc::ClientContext context;
  SetDeadline(&context, /*seconds=*/60);
  v1::EvictJobRequest request;
  request.set_job(job);
  v1::EvictJobResponse response;
  METS_RETURN_IF_ERROR(FromGrpc(stub_->EvictJob(&context, request, &response)));
  return response;
}

absl::StatusOr<int> AdminClient::KillJob(const std::string& job,
                                         absl::Duration grace) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::KillJobRequest request;
  request.set_job(job);
  request.set_grace_seconds(absl::ToDoubleSeconds(grace));
  v1::KillJobResponse response;
  METS_RETURN_IF_ERROR(FromGrpc(stub_->KillJob(&context, request, &response)));
  return response.processes();
}

void AdminClient::EventStream::Cancel() {
  cancelled_ = true;
  context_.TryCancel();
}

absl::Status AdminClient::EventStream::Finish() {
  const absl::Status status = FromGrpc(reader_->Finish());
  return cancelled_ && absl::IsCancelled(status) ? absl::OkStatus() : status;
}

std::unique_ptr<AdminClient::EventStream> AdminClient::WatchEvents(
    const v1::WatchEventsRequest& request) {
  auto stream = std::make_unique<EventStream>();
  if (!request.follow()) SetDeadline(&stream->context_);
  stream->reader_ = stub_->WatchEvents(&stream->context_, request);
  return stream;
}

absl::StatusOr<v1::ExplainJobResponse> AdminClient::ExplainJob(
    const std::string& job) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ExplainJobRequest request;
  request.set_job(job);
  v1::ExplainJobResponse response;
  METS_RETURN_IF_ERROR(
      FromGrpc(stub_->ExplainJob(&context, request, &response)));
  return response;
}

}  // namespace mets::ctl
