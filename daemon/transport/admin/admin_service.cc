#include "daemon/transport/admin/admin_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/job_name.h"
#include "daemon/transport/admin/event_messages.h"
#include "daemon/transport/admin/record_call.h"
#include "daemon/transport/sessions/session_service.h"

namespace mets::transport {
namespace {

v1::SharingMode ToMode(core::SharingMode mode) {
  switch (mode) {
    case core::SharingMode::kFree:
      return v1::SHARING_MODE_FREE;
    case core::SharingMode::kTurns:
      return v1::SHARING_MODE_TURNS;
    case core::SharingMode::kQuanta:
      return v1::SHARING_MODE_QUANTA;
  }
  return v1::SHARING_MODE_UNSPECIFIED;
}

void FillDevice(const core::DeviceStatus& from, v1::DeviceStatus* to) {
  to->set_id(from.id);
  to->set_kind(from.kind);
  to->set_pool_bytes(from.pool.count());
  to->set_free_bytes(from.free.count());
  to->set_cached_bytes(from.cached.count());
  to->set_resident_bytes(from.resident.count());
  to->set_moving_bytes(from.moving.count());
  to->set_draining_bytes(from.draining.count());
  to->set_orphan_bytes(from.orphan.count());
  to->set_swap_used_bytes(from.swap_used.count());
  to->set_swap_clean_bytes(from.swap_clean.count());
  to->set_swap_limit_bytes(from.swap_limit.count());
  to->set_sharing_mode(ToMode(from.mode));
  to->set_turns_total(from.turns_total);
  to->set_quanta_total(from.quanta_total);
  to->set_drained(from.drained);
  to->set_pinned_bytes(from.pinned.count());
  to->set_shared_bytes(from.shared.count());
  to->set_copied_out_bytes_total(from.copied_out_bytes);
  to->set_copied_in_bytes_total(from.copied_in_bytes);
  to->set_handover_bytes_total(from.handover.count());
  to->set_handover_seconds_total(absl::ToDoubleSeconds(from.handover_time));
}

// What sharing costs it.
void FillCosts(const core::JobStatus& from, v1::JobStatus* to) {
  const auto seconds = [](absl::Duration d) {
    return absl::ToDoubleSeconds(d);
  };
  const core::Totals& totals = from.totals;
  to->set_clean_evictions_total(totals.clean_evictions);
  to->set_restore_stall_seconds_total(seconds(totals.restore_stall));
  to->set_step_seconds_total(seconds(totals.step_time));
  to->set_step_wait_seconds_total(seconds(totals.step_wait));
  to->set_recent_step_seconds(seconds(from.recent_step));
  to->set_uncontended_step_seconds(seconds(from.uncontended_step));
  to->set_slowdown(from.slowdown);
  to->set_waiting_seconds(seconds(from.waiting_for));
  for (size_t i = 0; i < core::kFailures; ++i) {
    if (from.failures[i] == 0) continue;
    const char* name = core::NameOf(static_cast<core::Failure>(i));
    (*to->mutable_failures_total())[name] = from.failures[i];
  }
}

void FillJob(const core::JobStatus& from, v1::JobStatus* to) {
  to->set_name(from.name);
  to->set_device(from.device);
  to->set_sessions(from.sessions);
  to->set_resident_bytes(from.resident.count());
  to->set_swapped_bytes(from.swapped.count());
  to->set_pinned_bytes(from.pinned.count());
  to->set_held_bytes(from.held.count());
  to->set_cached_bytes(from.cached.count());
  to->set_limit_bytes(from.limit.count());
  to->set_guarantee_bytes(from.guarantee.count());
  to->set_priority(from.priority);
  to->set_evicted_bytes_total(from.totals.evicted.count());
  to->set_restored_bytes_total(from.totals.restored.count());
  to->set_unobserved_accesses_total(from.totals.unobserved_accesses);
  to->set_waiting(from.waiting);
  to->set_evictions_total(from.totals.evictions);
  to->set_restores_total(from.totals.restores);
  to->set_peak_live_bytes(from.totals.peak_live.count());
  to->set_peak_resident_bytes(from.totals.peak_resident.count());
  to->set_uid(from.uid);
  to->set_waits_total(from.waits_total);
  to->set_wait_seconds_total(absl::ToDoubleSeconds(from.wait_total));
  to->set_unresponsive_sessions(from.unresponsive_sessions);
  to->set_weight(from.weight);
  to->set_gate_open(from.gate_open);
  to->set_paused(from.paused);
  to->set_turns_total(from.turns_total);
  to->set_gate_wait_seconds_total(absl::ToDoubleSeconds(from.gate_wait_total));
  to->set_steps(from.totals.steps);
  to->set_step_seconds(absl::ToDoubleSeconds(from.step_duration));
  FillCosts(from, to);
  to->set_phase(core::PhaseName(from.phase));
}

void FillShare(const core::ShareStatus& from, v1::ShareStatus* to) {
  to->set_name(from.name);
  to->set_device(from.device);
  to->set_checksum(from.checksum);
  to->set_bytes(from.bytes.count());
  to->set_sessions(from.sessions);
  for (const std::string& job : from.jobs) to->add_jobs(job);
  to->set_payer(from.payer);
}

}  // namespace

void FillStatus(const core::Status& status, v1::GetStatusResponse* response) {
  response->set_policy(status.policy);
  for (const core::DeviceStatus& device : status.devices) {
    FillDevice(device, response->add_devices());
  }
  for (const core::JobStatus& job : status.jobs) {
    FillJob(job, response->add_jobs());
  }
  for (const core::ShareStatus& share : status.shares) {
    FillShare(share, response->add_shares());
  }
}

AdminService::AdminService(Epoch epoch, std::string version,
                           core::InputSink& sink,
                           const core::StatusSource& status,
                           Recordings& recordings, EventStreams& events,
                           const Clock& clock)
    : epoch_(epoch),
      version_(std::move(version)),
      calls_(sink),
      status_(status),
      recordings_(recordings),
      events_(events),
      clock_(clock),
      started_(clock.Now()) {}

grpc::ServerUnaryReactor* AdminService::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest*,
    v1::GetStatusResponse* response) {
  FillStatus(status_.GetStatus(), response);
  response->set_epoch(epoch_.value());
  response->set_version(version_);
  response->set_uptime_seconds(absl::ToDoubleSeconds(clock_.Now() - started_));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerBidiReactor<v1::RecordJobRequest, v1::RecordJobReply>*
AdminService::RecordJob(grpc::CallbackServerContext*) {
  return RecordCall::Start(recordings_);
}

grpc::ServerWriteReactor<v1::Event>* AdminService::WatchEvents(
    grpc::CallbackServerContext*, const v1::WatchEventsRequest* request) {
  return events_.Start(*request);
}

grpc::ServerUnaryReactor* AdminService::ExplainJob(
    grpc::CallbackServerContext* context, const v1::ExplainJobRequest* request,
    v1::ExplainJobResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = ValidateJobName(request->job());
  if (status.ok()) {
    for (const core::WhyAnswer& answer : status_.Why(request->job())) {
      FillAnswer(answer, response->add_answers());
    }
    FillLast(events_.log(), request->job(), response);
    if (response->answers().empty() && response->last().empty()) {
      status = absl::NotFoundError(absl::StrCat(
          "no job '", request->job(), "' is known; metsctl jobs lists them"));
    }
  }
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace mets::transport
