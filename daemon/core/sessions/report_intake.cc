#include "daemon/core/sessions/report_intake.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/costs/report_costs.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/sessions/session_exit.h"
#include "daemon/core/steps/plan_slots.h"

namespace mets::core {
namespace {

// What was skipped was in use: by one op, mostly.
constexpr absl::Duration kSkippedRests = absl::Milliseconds(1);
constexpr absl::Duration kFailedRests = absl::Seconds(1);
constexpr absl::Duration kTrimRests = absl::Milliseconds(100);

Bytes Clamp(Bytes amount, Bytes most) {
  return std::min(std::max(amount, Bytes()), most);
}

}  // namespace

absl::StatusOr<Bytes> ReportIntake::GiveBack(const Release& input,
                                             Device& device,
                                             const Session& session,
                                             Holding& holding) {
  // A record may be older than what the process holds.
  const bool unsure = session.awaits_snapshot;
  if (input.orphan < Bytes() || (input.orphan > holding.orphan && !unsure)) {
    return absl::InvalidArgumentError(
        absl::StrCat("released ", input.orphan.count(), " orphan bytes of ",
                     holding.orphan.count()));
  }
  METS_ASSIGN_OR_RETURN(const Bytes bytes,
                        device.ledger.Release(input.chunks, session.id));
  holding.chunk_bytes -= bytes;
  const Bytes orphan = std::min(input.orphan, holding.orphan);
  holding.orphan -= orphan;
  device.ledger.ChangeOrphan(Bytes() - orphan);
  return bytes + orphan;
}

void ReportIntake::OnRelease(const Release& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return;
  size_t index = 0;
  Device* device = state_.FindDevice(input.device, &index);
  if (device == nullptr) {
    RefuseSession(state_, *session, "released memory of an unknown device");
    return;
  }
  Holding& holding = session->holdings[index];
  const absl::StatusOr<Bytes> given =
      GiveBack(input, *device, *session, holding);
  if (!given.ok()) {
    RefuseSession(state_, *session, std::string(given.status().message()));
    return;
  }
  const Bytes released = *given;
  if (Order* order = state_.orders.Find(input.session, input.order)) {
    order->released += released;
    if (order->kind == OrderKind::kEvict) device->handover.AddBytes(released);
    if (!order->late) order->due = state_.now + state_.config.order_timeout;
    if (order->kind == OrderKind::kTrim) holding.cached -= released;
  }
  if (input.lent) {
    holding.lent.insert(holding.lent.end(), input.chunks.begin(),
                        input.chunks.end());
    holding.cached -= released;
  }
  holding.cached = Clamp(holding.cached, holding.own());
  if (input.overdraft) device->overdraft.GiveBack(input.session);
  device->stir = true;
}

void ReportIntake::OnOrderDone(const OrderDone& input) {
  Session* session = state_.Speaker(input.session);
  Order* found = state_.orders.Find(input.session, input.order);
  if (session == nullptr || found == nullptr ||
      found->kind == OrderKind::kForget) {
    return;  // Of another epoch, or answered before.
  }
  const Order order = std::move(*found);
  state_.orders.Remove(order.id);
  if (order.kind == OrderKind::kTrim) {
    Holding& holding = session->holdings[order.device];
    if (order.released < order.target) {
      holding.trim_from = state_.now + kTrimRests;
    }
  } else if (order.kind == OrderKind::kPlan) {
    plans_.OnAnswered(*session, order, !input.error.empty());
  } else {
    state_.devices[order.device].handover.End(state_.now);
    FinishEvict(*session, order, input);
  }
  Device& device = state_.devices[order.device];
  device.search_from = absl::InfinitePast();
  device.stir = true;
}

void ReportIntake::FinishEvict(Session& session, const Order& order,
                               const OrderDone& input) {
  absl::flat_hash_map<BufferId, const BufferResult*> results;
  for (const BufferResult& result : input.results) {
    results[result.buffer] = &result;
  }
  LeftBuffers left;
  for (const Order::Candidate& candidate : order.candidates) {
    auto it = results.find(candidate.buffer);
    const BufferResult* result = it == results.end() ? nullptr : it->second;
    if (result != nullptr && result->outcome == Outcome::kDone) {
      left.Add(candidate);
    }
    FinishCandidate(session, order, candidate, result);
  }
  NoteEvicted(state_, session, order, left);
}

void ReportIntake::FinishCandidate(Session& session, const Order& order,
                                   const Order::Candidate& candidate,
                                   const BufferResult* result) {
  Holding& holding = session.holdings[order.device];
  BufferTable& buffers = holding.buffers;
  Buffer* buffer = buffers.Find(candidate.buffer);
  const Outcome outcome =
      result == nullptr ? Outcome::kSkipped : result->outcome;
  if (buffer == nullptr || buffer->order != order.id) {
    state_.swap.Free(candidate.slot);  // Freed while the order ran.
    return;
  }
  buffer->order = OrderId();
  const bool came_back =
      buffer->left && buffer->state == BufferState::kResident;
  if (outcome == Outcome::kFreed) {
    swap_.FreeSlot(*buffer);
    SetPlanned(state_, holding, *buffer, SlotId());
    state_.EraseBuffer(session, order.device, candidate.buffer);
    return;
  }
  if (outcome == Outcome::kDone && !came_back) {
    // Also when the last report said resident: it may be an old one.
    buffers.Set(*buffer, BufferState::kSwapped, buffer->mobility);
    state_.swap.SetState(candidate.slot, SlotState::kFull);
    SetPlanned(state_, holding, *buffer, SlotId());
  } else if (outcome == Outcome::kFailed) {
    swap_.FreeSlot(*buffer);
    buffer->skip_until = state_.now + kFailedRests;
    NoteFailure(*session.job, order.device, Failure::kCopy);
  } else {
    const bool keeps = buffer->clean && (candidate.reused || came_back);
    if (keeps) {
      state_.swap.SetClean(candidate.slot, buffer->last_use);
    } else if (buffer->state == BufferState::kSwapped &&
               !buffer->planned.ok()) {
      state_.swap.SetState(candidate.slot, SlotState::kFull);
    } else {
      swap_.FreeSlot(*buffer);
    }
    if (outcome == Outcome::kSkipped) {
      buffer->skip_until = state_.now + kSkippedRests;
    }
  }
  state_.UpdateVictim(session, order.device, *buffer);
}

std::string ReportIntake::Fault(const BufferReport& report,
                                const Holding& holding) const {
  if (report.freed) return "";
  const auto fault = [&](const char* what) {
    return absl::StrCat("reported buffer ", report.id.value(), " ", what);
  };
  if (!report.id.ok()) return fault("without an id");
  if (report.size <= Bytes() || report.size > kLargestBuffer) {
    return fault("with an impossible size");
  }
  if (report.idle < absl::ZeroDuration()) return fault("used in the future");
  const Buffer* known = holding.buffers.Find(report.id);
  if (known != nullptr && known->size != report.size) {
    return fault("with another size than before");
  }
  return "";
}

void ReportIntake::OnBufferChanges(const BufferChanges& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr || session->awaits_snapshot) return;
  size_t index = 0;
  Device* device = state_.FindDevice(input.device, &index);
  if (device == nullptr) {
    RefuseSession(state_, *session, "reported on an unknown device");
    return;
  }
  Holding& holding = session->holdings[index];
  for (const BufferReport& report : input.buffers) {
    std::string fault = Fault(report, holding);
    const size_t most = state_.config.max_buffers_per_session;
    if (fault.empty() && !report.freed && holding.buffers.size() >= most &&
        holding.buffers.Find(report.id) == nullptr) {
      fault = absl::StrCat("reported more than ", most, " buffers");
    }
    if (!fault.empty()) {
      RefuseSession(state_, *session, std::move(fault));
      return;
    }
    Apply(*session, index, report);
  }
  holding.cached = Clamp(input.cached, holding.own());
  holding.pinned = Clamp(input.pinned, holding.bytes());
  NoteMoves(state_, *session, index);
  NoteTotals(state_, index, *session, input.totals);
  if (input.pinned > Bytes()) session->job->last_active = state_.now;
  // Now that it is known which buffers are the step's.
  if (std::exchange(holding.plan.due, false)) plans_.Consider(*session, index);
  device->stir = true;
}

void ReportIntake::Apply(Session& session, size_t index,
                         const BufferReport& report) {
  Holding& holding = session.holdings[index];
  BufferTable& buffers = holding.buffers;
  if (report.freed) {
    Buffer* buffer = buffers.Find(report.id);
    if (buffer == nullptr) return;
    SetPlanned(state_, holding, *buffer, SlotId());
    // An order keeps its slot until it has been answered.
    if (!buffer->order.ok()) swap_.FreeSlot(*buffer);
    state_.EraseBuffer(session, index, report.id);
    return;
  }
  Buffer& buffer = buffers.FindOrAdd(report.id, report.size);
  const bool swapped = report.state == BufferState::kSwapped;
  const BufferState before = buffer.state;
  buffers.Set(buffer, report.state, report.mobility);
  buffer.pinned = report.pinned;
  buffer.last_use = state_.now - report.idle;
  buffer.logical = report.logical;
  buffer.next_use = holding.steps.NextUse(report.logical, state_.now);
  Job& job = *session.job;
  job.last_active = std::max(job.last_active, buffer.last_use);
  SetPlanned(state_, holding, buffer, swapped ? report.slot : SlotId());
  if (!swapped && before == BufferState::kSwapped) {
    holding.restored.Add(buffer.size);
  } else if (swapped && before == BufferState::kResident &&
             buffer.planned.ok()) {
    holding.left_by_plan.Add(buffer.size);
  }
  const bool clean = !swapped && report.clean && buffer.slot.ok() &&
                     report.slot == buffer.slot;
  if (buffer.order.ok()) {
    buffer.left |= swapped && !buffer.planned.ok();
    buffer.clean = clean;
  } else if (!buffer.slot.ok()) {
    // There is no slot to keep or to free.
  } else if (swapped && !buffer.planned.ok()) {
    state_.swap.SetState(buffer.slot, SlotState::kFull);
  } else if (clean) {
    state_.swap.SetClean(buffer.slot, buffer.last_use);
  } else {
    swap_.FreeSlot(buffer);
  }
  state_.UpdateVictim(session, index, buffer);
}

}  // namespace mets::core
