#include "daemon/transport/sessions/from_client.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"
#include "common/ipc/descriptor_channel.h"
#include "daemon/transport/sessions/device_name.h"
#include "daemon/transport/sessions/step_from_client.h"

namespace mets::transport {
namespace {

using MaybeInput = absl::StatusOr<std::optional<core::Input>>;

constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
constexpr int kMaxRanges = 4096;

absl::StatusOr<Bytes> ToBytes(uint64_t count, absl::string_view field) {
  if (count <= kMaxBytes) return Bytes(static_cast<int64_t>(count));
  return absl::InvalidArgumentError(
      absl::StrCat(field, " = ", count, " is no amount of memory"));
}

absl::StatusOr<int64_t> ToCount(uint64_t count, absl::string_view field) {
  if (count <= kMaxBytes) return static_cast<int64_t>(count);
  return absl::InvalidArgumentError(
      absl::StrCat(field, " = ", count, " is no count"));
}

absl::StatusOr<absl::Duration> ToDuration(uint64_t us,
                                          absl::string_view field) {
  METS_ASSIGN_OR_RETURN(const int64_t count, ToCount(us, field));
  return absl::Microseconds(count);
}

template <typename ThingId, typename Repeated>
std::vector<ThingId> ToIds(const Repeated& values) {
  std::vector<ThingId> ids;
  ids.reserve(values.size());
  for (uint64_t value : values) ids.push_back(ThingId(value));
  return ids;
}

absl::StatusOr<core::Totals> ToTotals(const v1::Totals& message) {
  core::Totals totals;
  METS_ASSIGN_OR_RETURN(
      totals.evicted, ToBytes(message.evicted_bytes(), "totals.evicted_bytes"));
  METS_ASSIGN_OR_RETURN(totals.restored, ToBytes(message.restored_bytes(),
                                                 "totals.restored_bytes"));
  METS_ASSIGN_OR_RETURN(totals.evictions,
                        ToCount(message.evictions(), "totals.evictions"));
  METS_ASSIGN_OR_RETURN(totals.restores,
                        ToCount(message.restores(), "totals.restores"));
  METS_ASSIGN_OR_RETURN(
      totals.unobserved_accesses,
      ToCount(message.unobserved_accesses(), "totals.unobserved_accesses"));
  METS_ASSIGN_OR_RETURN(
      totals.clean_evictions,
      ToCount(message.clean_evictions(), "totals.clean_evictions"));
  METS_ASSIGN_OR_RETURN(
      totals.restore_stall,
      ToDuration(message.restore_stall_us(), "totals.restore_stall_us"));
  METS_ASSIGN_OR_RETURN(totals.steps, ToCount(message.steps(), "totals.steps"));
  METS_ASSIGN_OR_RETURN(totals.step_time,
                        ToDuration(message.step_us(), "totals.step_us"));
  METS_ASSIGN_OR_RETURN(totals.step_wait, ToDuration(message.step_wait_us(),
                                                     "totals.step_wait_us"));
  METS_ASSIGN_OR_RETURN(totals.peak_live, ToBytes(message.peak_live_bytes(),
                                                  "totals.peak_live_bytes"));
  METS_ASSIGN_OR_RETURN(
      totals.peak_resident,
      ToBytes(message.peak_resident_bytes(), "totals.peak_resident_bytes"));
  return totals;
}

absl::StatusOr<core::Mobility> ToMobility(v1::Mobility mobility) {
  switch (mobility) {
    case v1::MOBILITY_MOVABLE:
      return core::Mobility::kMovable;
    case v1::MOBILITY_HELD:
      return core::Mobility::kHeld;
    case v1::MOBILITY_FIXED:
      return core::Mobility::kFixed;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("buffers.mobility = ", static_cast<int>(mobility)));
  }
}

absl::StatusOr<core::BufferReport> ToReport(const v1::BufferReport& message) {
  core::BufferReport report;
  report.id = BufferId(message.buffer_id());
  if (!report.id.ok()) return absl::InvalidArgumentError("buffers.buffer_id=0");
  report.freed = message.freed();
  if (report.freed) return report;
  METS_ASSIGN_OR_RETURN(report.size,
                        ToBytes(message.size_bytes(), "buffers.size_bytes"));
  METS_ASSIGN_OR_RETURN(
      report.orphan, ToBytes(message.orphan_bytes(), "buffers.orphan_bytes"));
  METS_ASSIGN_OR_RETURN(report.mobility, ToMobility(message.mobility()));
  if (message.state() == v1::BUFFER_STATE_SWAPPED) {
    report.state = core::BufferState::kSwapped;
  } else if (message.state() != v1::BUFFER_STATE_RESIDENT) {
    return absl::InvalidArgumentError(
        absl::StrCat("buffers.state = ", static_cast<int>(message.state())));
  }
  report.clean = message.clean();
  report.pinned = message.pinned();
  report.idle = absl::Milliseconds(message.idle_ms());
  report.slot = SlotId(message.slot_id());
  report.logical = message.logical();
  return report;
}

template <typename Repeated>
absl::StatusOr<std::vector<core::BufferReport>> ToReports(
    const Repeated& messages) {
  std::vector<core::BufferReport> reports;
  reports.reserve(messages.size());
  for (const v1::BufferReport& message : messages) {
    METS_ASSIGN_OR_RETURN(core::BufferReport report, ToReport(message));
    reports.push_back(report);
  }
  return reports;
}

MaybeInput Convert(const v1::Snapshot& message, SessionId session,
                   Epoch epoch) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  const int chunks =
      message.chunk_ids_size() + message.publishing_chunk_ids_size();
  if (chunks > 0 && message.epoch() != epoch.value()) {
    return absl::InvalidArgumentError(
        "snapshot.chunk_ids belong to another run of metsd");
  }
  core::Snapshot snapshot;
  snapshot.session = session;
  snapshot.device = message.device();
  snapshot.chunks = ToIds<ChunkId>(message.chunk_ids());
  METS_ASSIGN_OR_RETURN(snapshot.orphan, ToBytes(message.orphan_bytes(),
                                                 "snapshot.orphan_bytes"));
  METS_ASSIGN_OR_RETURN(snapshot.buffers, ToReports(message.buffers()));
  METS_ASSIGN_OR_RETURN(snapshot.cached, ToBytes(message.cached_bytes(),
                                                 "snapshot.cached_bytes"));
  METS_ASSIGN_OR_RETURN(
      snapshot.orphan_swap,
      ToBytes(message.orphan_swap_bytes(), "snapshot.orphan_swap_bytes"));
  METS_ASSIGN_OR_RETURN(snapshot.totals, ToTotals(message.totals()));
  for (const v1::HeldShare& from : message.shares()) {
    METS_ASSIGN_OR_RETURN(const Bytes size,
                          ToBytes(from.size_bytes(), "snapshot.shares.size"));
    snapshot.shares.push_back(
        {ShareId(from.share_id()), Epoch(from.epoch()), size});
  }
  snapshot.publishing = ToIds<ChunkId>(message.publishing_chunk_ids());
  snapshot.last = message.last();
  return core::Input(std::move(snapshot));
}

// What publishing and attaching have in common.
template <typename Share, typename Message>
absl::StatusOr<Share> ToShare(const Message& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  Share share;
  share.session = session;
  share.request = RequestId(message.request_id());
  share.device = message.device();
  share.name = message.name();
  share.checksum = message.checksum();
  METS_ASSIGN_OR_RETURN(share.bytes, ToBytes(message.bytes(), "share.bytes"));
  return share;
}

MaybeInput Convert(const v1::PublishShare& message, SessionId session) {
  METS_ASSIGN_OR_RETURN(core::PublishShare publish,
                        ToShare<core::PublishShare>(message, session));
  publish.chunks = ToIds<ChunkId>(message.chunk_ids());
  return core::Input(std::move(publish));
}

MaybeInput Convert(const v1::AttachShare& message, SessionId session) {
  METS_ASSIGN_OR_RETURN(core::AttachShare attach,
                        ToShare<core::AttachShare>(message, session));
  return core::Input(std::move(attach));
}

MaybeInput Convert(const v1::DetachShare& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  return core::Input(core::DetachShare{session, message.device(),
                                       ShareId(message.share_id()),
                                       Epoch(message.epoch())});
}

MaybeInput Convert(const v1::Acquire& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  if (message.range_bytes_size() > kMaxRanges) {
    return absl::InvalidArgumentError(
        absl::StrCat("acquire.range_bytes has ", message.range_bytes_size(),
                     " entries, at most ", kMaxRanges));
  }
  core::Acquire acquire;
  acquire.session = session;
  acquire.request = RequestId(message.request_id());
  acquire.device = message.device();
  for (uint64_t range : message.range_bytes()) {
    METS_ASSIGN_OR_RETURN(Bytes size, ToBytes(range, "acquire.range_bytes"));
    acquire.ranges.push_back(size);
  }
  acquire.wait = message.deadline_ms() == std::numeric_limits<uint32_t>::max()
                     ? absl::InfiniteDuration()
                     : absl::Milliseconds(message.deadline_ms());
  acquire.overdraft = message.overdraft();
  acquire.pinned = message.pinned();
  acquire.op = message.op();
  acquire.fewest_chunks = message.fewest_chunks();
  return core::Input(std::move(acquire));
}

MaybeInput Convert(const v1::Release& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  core::Release release;
  release.session = session;
  release.device = message.device();
  release.chunks = ToIds<ChunkId>(message.chunk_ids());
  METS_ASSIGN_OR_RETURN(
      release.orphan, ToBytes(message.orphan_bytes(), "release.orphan_bytes"));
  release.overdraft = message.overdraft();
  release.order = OrderId(message.order_id());
  release.lent = message.lent();
  return core::Input(std::move(release));
}

absl::StatusOr<core::Outcome> ToOutcome(v1::BufferOutcome outcome) {
  switch (outcome) {
    case v1::BUFFER_OUTCOME_DONE:
      return core::Outcome::kDone;
    case v1::BUFFER_OUTCOME_SKIPPED:
      return core::Outcome::kSkipped;
    case v1::BUFFER_OUTCOME_FREED:
      return core::Outcome::kFreed;
    case v1::BUFFER_OUTCOME_FAILED:
      return core::Outcome::kFailed;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "order_done.results.outcome = ", static_cast<int>(outcome)));
  }
}

MaybeInput Convert(const v1::OrderDone& message, SessionId session) {
  core::OrderDone done;
  done.session = session;
  done.order = OrderId(message.order_id());
  done.error = message.error();
  for (const v1::BufferResult& from : message.results()) {
    core::BufferResult result;
    result.buffer = BufferId(from.buffer_id());
    METS_ASSIGN_OR_RETURN(result.outcome, ToOutcome(from.outcome()));
    result.clean = from.clean();
    result.slot = SlotId(from.slot_id());
    done.results.push_back(result);
  }
  return core::Input(std::move(done));
}

MaybeInput Convert(const v1::BufferChanges& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  core::BufferChanges changes;
  changes.session = session;
  changes.device = message.device();
  METS_ASSIGN_OR_RETURN(changes.buffers, ToReports(message.buffers()));
  METS_ASSIGN_OR_RETURN(changes.cached, ToBytes(message.cached_bytes(),
                                                "buffer_changes.cached_bytes"));
  METS_ASSIGN_OR_RETURN(changes.pinned, ToBytes(message.pinned_bytes(),
                                                "buffer_changes.pinned_bytes"));
  METS_ASSIGN_OR_RETURN(changes.totals, ToTotals(message.totals()));
  return core::Input(std::move(changes));
}

MaybeInput Convert(const v1::StepNeed& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  core::StepNeed need;
  need.session = session;
  need.device = message.device();
  METS_ASSIGN_OR_RETURN(need.peak,
                        ToBytes(message.peak_bytes(), "step_need.peak_bytes"));
  METS_ASSIGN_OR_RETURN(need.persistent, ToBytes(message.persistent_bytes(),
                                                 "step_need.persistent_bytes"));
  METS_ASSIGN_OR_RETURN(need.step,
                        ToDuration(message.step_us(), "step_need.step_us"));
  return core::Input(std::move(need));
}

MaybeInput Convert(const v1::TurnWanted& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  return core::Input(
      core::TurnWanted{session, message.device(), OrderId(message.order_id())});
}

MaybeInput Convert(const v1::TurnEnded& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  core::TurnEnded ended;
  ended.session = session;
  ended.device = message.device();
  ended.order = OrderId(message.order_id());
  METS_ASSIGN_OR_RETURN(ended.computed, ToDuration(message.computed_us(),
                                                   "turn_ended.computed_us"));
  ended.step_end = message.step_end();
  METS_ASSIGN_OR_RETURN(
      ended.stalled, ToDuration(message.stalled_us(), "turn_ended.stalled_us"));
  return core::Input(std::move(ended));
}

MaybeInput Convert(const v1::Forgotten& message, SessionId session) {
  return core::Input(core::Forgotten{session, OrderId(message.order_id()),
                                     ToIds<ChunkId>(message.kept_chunk_ids())});
}

}  // namespace

absl::Status CheckHello(const v1::Hello& hello) {
  if (hello.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this client speaks version ", hello.protocol_version(),
        " of the METS protocol, metsd speaks version ", kProtocolVersion,
        ": use libmets and metsd of the same release"));
  }
  if (hello.token().size() != ipc::kTokenSize) {
    return absl::UnauthenticatedError(
        absl::StrCat("wrong token: ", hello.token().size(),
                     " bytes, a token has ", ipc::kTokenSize));
  }
  METS_RETURN_IF_ERROR(ValidateJobName(hello.job()));
  METS_RETURN_IF_ERROR(
      ToBytes(hello.limit_bytes(), "hello.limit_bytes").status());
  return ToBytes(hello.guarantee_bytes(), "hello.guarantee_bytes").status();
}

MaybeInput FromClient(const v1::ClientMessage& message, SessionId session,
                      Epoch epoch) {
  switch (message.message_case()) {
    case v1::ClientMessage::kSnapshot:
      return Convert(message.snapshot(), session, epoch);
    case v1::ClientMessage::kAttachDevice:
      METS_RETURN_IF_ERROR(CheckDeviceName(message.attach_device().device()));
      return core::Input(
          core::AttachDevice{session, message.attach_device().device(),
                             message.attach_device().ops_seen()});
    case v1::ClientMessage::kAcquire:
      return Convert(message.acquire(), session);
    case v1::ClientMessage::kCancel:
      return core::Input(
          core::Cancel{session, RequestId(message.cancel().request_id())});
    case v1::ClientMessage::kRelease:
      return Convert(message.release(), session);
    case v1::ClientMessage::kOrderDone:
      if (message.order_done().epoch() != epoch.value()) return std::nullopt;
      return Convert(message.order_done(), session);
    case v1::ClientMessage::kForgotten:
      if (message.forgotten().epoch() != epoch.value()) return std::nullopt;
      return Convert(message.forgotten(), session);
    case v1::ClientMessage::kBufferChanges:
      return Convert(message.buffer_changes(), session);
    case v1::ClientMessage::kStepProgram:
      return StepFromClient(message.step_program(), session);
    case v1::ClientMessage::kStepDigest:
      return StepFromClient(message.step_digest(), session);
    case v1::ClientMessage::kStepNeed:
      return Convert(message.step_need(), session);
    case v1::ClientMessage::kTurnWanted:
      if (message.turn_wanted().epoch() != epoch.value()) return std::nullopt;
      return Convert(message.turn_wanted(), session);
    case v1::ClientMessage::kTurnEnded:
      if (message.turn_ended().epoch() != epoch.value()) return std::nullopt;
      return Convert(message.turn_ended(), session);
    case v1::ClientMessage::kPublishShare:
      return Convert(message.publish_share(), session);
    case v1::ClientMessage::kAttachShare:
      return Convert(message.attach_share(), session);
    case v1::ClientMessage::kDetachShare:
      return Convert(message.detach_share(), session);
    case v1::ClientMessage::kProgress:
    case v1::ClientMessage::kTraceChunk:
      return std::nullopt;
    case v1::ClientMessage::kHello:
      return absl::InvalidArgumentError("a second Hello on one stream");
    case v1::ClientMessage::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an empty or unknown message");
}

}  // namespace mets::transport
