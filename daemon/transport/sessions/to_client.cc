#include "daemon/transport/sessions/to_client.h"

#include "daemon/transport/sessions/from_client.h"

namespace mets::transport {

v1::DaemonMessage ToMessage(const core::Welcome& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_epoch(epoch.value());
  welcome.set_protocol_version(kProtocolVersion);
  welcome.set_limit_bytes(action.limit.count());
  welcome.set_guarantee_bytes(action.guarantee.count());
  welcome.set_priority(action.priority);
  for (const std::string& device : action.devices) welcome.add_devices(device);
  return message;
}

v1::DaemonMessage ToMessage(const core::DeviceReady& action, Epoch) {
  v1::DaemonMessage message;
  v1::DeviceReady& ready = *message.mutable_device_ready();
  ready.set_device(action.device);
  ready.set_kind(action.kind);
  ready.set_pool_bytes(action.pool.count());
  for (Bytes size : action.chunk_classes) {
    ready.add_chunk_classes(size.count());
  }
  ready.set_error(action.error);
  return message;
}

namespace {

void AddChunks(const std::vector<core::ChunkRef>& chunks,
               google::protobuf::RepeatedPtrField<v1::Chunk>* to) {
  for (const core::ChunkRef& chunk : chunks) {
    v1::Chunk& added = *to->Add();
    added.set_chunk_id(chunk.id.value());
    added.set_size_bytes(chunk.size.count());
  }
}

}  // namespace

v1::DaemonMessage ToMessage(const core::Grant& action, Epoch epoch,
                            uint64_t fd_seq) {
  v1::DaemonMessage message;
  v1::Granted& granted = *message.mutable_granted();
  granted.set_request_id(action.request.value());
  granted.set_epoch(epoch.value());
  AddChunks(action.chunks, granted.mutable_chunks());
  for (uint32_t count : action.range_chunks) granted.add_range_chunks(count);
  granted.set_fd_seq(fd_seq);
  granted.set_overdraft(action.overdraft);
  return message;
}

namespace {

v1::ShareOutcome ToOutcome(core::ShareOutcome outcome) {
  switch (outcome) {
    case core::ShareOutcome::kDone:
      return v1::SHARE_OUTCOME_DONE;
    case core::ShareOutcome::kBad:
      return v1::SHARE_OUTCOME_BAD;
    case core::ShareOutcome::kUnknown:
      return v1::SHARE_OUTCOME_UNKNOWN;
    case core::ShareOutcome::kExists:
      return v1::SHARE_OUTCOME_EXISTS;
    case core::ShareOutcome::kRefused:
      return v1::SHARE_OUTCOME_REFUSED;
  }
  return v1::SHARE_OUTCOME_UNSPECIFIED;
}

}  // namespace

v1::DaemonMessage ToMessage(const core::ShareAnswer& action, Epoch epoch,
                            uint64_t fd_seq) {
  v1::DaemonMessage message;
  v1::ShareAnswer& answer = *message.mutable_share_answer();
  answer.set_request_id(action.request.value());
  answer.set_epoch(epoch.value());
  answer.set_outcome(ToOutcome(action.outcome));
  answer.set_reason(action.reason);
  answer.set_share_id(action.share.value());
  answer.set_bytes(action.bytes.count());
  answer.set_checksum(action.checksum);
  AddChunks(action.chunks, answer.mutable_chunks());
  answer.set_fd_seq(fd_seq);
  return message;
}

v1::DaemonMessage ToMessage(const core::Regrant& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::Regrant& regrant = *message.mutable_regrant();
  regrant.set_epoch(epoch.value());
  regrant.set_device(action.device);
  for (ChunkId chunk : action.chunks) regrant.add_chunk_ids(chunk.value());
  return message;
}

v1::DaemonMessage ToMessage(const core::Deny& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::Denied& denied = *message.mutable_denied();
  denied.set_request_id(action.request.value());
  denied.set_epoch(epoch.value());
  denied.set_reason(action.reason);
  for (const std::string& holder : action.holders) denied.add_holders(holder);
  denied.set_advice(action.advice);
  denied.set_impossible(action.impossible);
  return message;
}

namespace {

void SetSlot(const core::Slot& slot, v1::Slot* to) {
  to->set_slot_id(slot.id.value());
  for (const core::SlotPiece& piece : slot.pieces) {
    v1::SlotPiece& part = *to->add_pieces();
    part.set_extent_id(piece.extent.value());
    part.set_offset_bytes(piece.offset.count());
    part.set_size_bytes(piece.size.count());
  }
}

}  // namespace

v1::DaemonMessage ToMessage(const core::EvictOrder& action, Epoch epoch,
                            uint64_t fd_seq) {
  v1::DaemonMessage message;
  v1::Evict& evict = *message.mutable_evict();
  evict.set_order_id(action.order.value());
  evict.set_epoch(epoch.value());
  evict.set_device(action.device);
  evict.set_target_bytes(action.target.count());
  evict.set_fd_seq(fd_seq);
  for (const core::EvictOrder::Candidate& candidate : action.candidates) {
    v1::EvictCandidate& to = *evict.add_candidates();
    to.set_buffer_id(candidate.buffer.value());
    SetSlot(candidate.slot, to.mutable_slot());
  }
  return message;
}

v1::DaemonMessage ToMessage(const core::PlanOrder& action, Epoch epoch,
                            uint64_t fd_seq) {
  v1::DaemonMessage message;
  v1::Plan& plan = *message.mutable_plan();
  plan.set_order_id(action.order.value());
  plan.set_epoch(epoch.value());
  plan.set_device(action.device);
  plan.set_step_signature(action.plan.signature);
  plan.set_budget_bytes(action.plan.budget.count());
  plan.set_fd_seq(fd_seq);
  for (const steps::Absence& absence : action.plan.absences) {
    v1::PlanAbsence& to = *plan.add_absences();
    to.set_buffer(absence.buffer);
    to.set_evict_after(absence.evict_after);
    to.set_restore_at(absence.restore_at);
    to.set_use(absence.use);
    to.set_returns(absence.returns);
  }
  for (const core::PlanOrder::Place& place : action.places) {
    v1::PlanSlot& to = *plan.add_slots();
    to.set_buffer(place.buffer);
    SetSlot(place.slot, to.mutable_slot());
  }
  return message;
}

v1::DaemonMessage ToMessage(const core::TrimOrder& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::Trim& trim = *message.mutable_trim();
  trim.set_order_id(action.order.value());
  trim.set_epoch(epoch.value());
  trim.set_device(action.device);
  trim.set_target_bytes(action.target.count());
  return message;
}

v1::DaemonMessage ToMessage(const core::ForgetOrder& action, Epoch epoch,
                            uint64_t fd_seq) {
  v1::DaemonMessage message;
  v1::ForgetChunks& forget = *message.mutable_forget_chunks();
  forget.set_order_id(action.order.value());
  forget.set_epoch(epoch.value());
  for (ChunkId chunk : action.chunks) forget.add_chunk_ids(chunk.value());
  for (ExtentId extent : action.extents) forget.add_extent_ids(extent.value());
  forget.set_fd_seq(fd_seq);
  return message;
}

v1::DaemonMessage ToMessage(const core::GateOrder& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::Gate& gate = *message.mutable_gate();
  gate.set_order_id(action.order.value());
  gate.set_epoch(epoch.value());
  gate.set_state(action.open ? v1::GATE_STATE_OPEN : v1::GATE_STATE_CLOSED);
  gate.set_moment(action.moment == core::GateMoment::kNow
                      ? v1::GATE_MOMENT_NOW
                      : v1::GATE_MOMENT_STEP_END);
  gate.set_device(action.device);
  gate.set_idle_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(action.idle)));
  return message;
}

v1::DaemonMessage ToMessage(const core::LimitsChanged& action, Epoch epoch) {
  v1::DaemonMessage message;
  v1::SetLimits& limits = *message.mutable_set_limits();
  limits.set_epoch(epoch.value());
  limits.set_device(action.device);
  limits.set_limit_bytes(action.limit.count());
  limits.set_tight(action.tight);
  return message;
}

v1::DaemonMessage ToMessage(const core::SendNotice& action, Epoch) {
  v1::DaemonMessage message;
  message.mutable_notice()->set_text(action.text);
  return message;
}

v1::DaemonMessage ToMessage(const core::SendBye& action, Epoch) {
  v1::DaemonMessage message;
  message.mutable_bye()->set_reason(action.reason);
  message.mutable_bye()->set_restarting(action.restarting);
  return message;
}

v1::DaemonMessage ToMessage(const core::Refuse& action, Epoch) {
  v1::DaemonMessage message;
  message.mutable_bye()->set_reason(action.reason);
  return message;
}

}  // namespace mets::transport
