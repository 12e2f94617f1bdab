#include "daemon/transport/sessions/step_from_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/transport/sessions/device_name.h"

namespace mets::transport {
namespace {

using MaybeInput = absl::StatusOr<std::optional<core::Input>>;

constexpr uint64_t kMaxNumber = uint64_t{1} << 60;

absl::StatusOr<int64_t> ToNumber(uint64_t number, absl::string_view field) {
  if (number <= kMaxNumber) return static_cast<int64_t>(number);
  return absl::InvalidArgumentError(
      absl::StrCat(field, " = ", number, " is too large"));
}

absl::StatusOr<absl::Duration> ToDuration(uint64_t us,
                                          absl::string_view field) {
  METS_ASSIGN_OR_RETURN(const int64_t number, ToNumber(us, field));
  return absl::Microseconds(number);
}

absl::StatusOr<steps::StepOp> ToOp(const v1::StepOp& message) {
  steps::StepOp op;
  METS_ASSIGN_OR_RETURN(
      op.start, ToDuration(message.start_us(), "step_program.ops.start_us"));
  METS_ASSIGN_OR_RETURN(
      op.busy, ToDuration(message.busy_us(), "step_program.ops.busy_us"));
  op.accesses.reserve(message.accesses_size());
  for (uint32_t access : message.accesses()) {
    op.accesses.push_back(
        {access / 4, static_cast<steps::AccessKind>(access % 4)});
  }
  op.frees.assign(message.frees().begin(), message.frees().end());
  return op;
}

}  // namespace

MaybeInput StepFromClient(const v1::StepProgram& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  if (message.persistent_size() != message.buffer_bytes_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "step_program has ", message.buffer_bytes_size(), " buffer_bytes and ",
        message.persistent_size(), " persistent"));
  }
  core::StepSeen seen;
  seen.session = session;
  seen.device = message.device();
  seen.first = message.first();
  seen.last = message.last();
  seen.part.signature = message.step_signature();
  METS_ASSIGN_OR_RETURN(
      seen.part.duration,
      ToDuration(message.duration_us(), "step_program.duration_us"));
  for (int i = 0; i < message.buffer_bytes_size(); ++i) {
    METS_ASSIGN_OR_RETURN(
        const int64_t size,
        ToNumber(message.buffer_bytes(i), "step_program.buffer_bytes"));
    seen.part.buffers.push_back({Bytes(size), message.persistent(i)});
  }
  for (const v1::StepOp& from : message.ops()) {
    METS_ASSIGN_OR_RETURN(steps::StepOp op, ToOp(from));
    seen.part.ops.push_back(std::move(op));
  }
  return core::Input(std::move(seen));
}

MaybeInput StepFromClient(const v1::StepDigest& message, SessionId session) {
  METS_RETURN_IF_ERROR(CheckDeviceName(message.device()));
  core::StepProgress progress;
  progress.session = session;
  progress.device = message.device();
  progress.signature = message.step_signature();
  METS_ASSIGN_OR_RETURN(progress.steps,
                        ToNumber(message.steps(), "step_digest.steps"));
  METS_ASSIGN_OR_RETURN(
      progress.duration,
      ToDuration(message.duration_us(), "step_digest.duration_us"));
  METS_ASSIGN_OR_RETURN(
      progress.since_begin,
      ToDuration(message.since_begin_us(), "step_digest.since_begin_us"));
  return core::Input(std::move(progress));
}

}  // namespace mets::transport
