#include "daemon/app/recovery/recovery.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process.h"

namespace mets::app {
namespace {

// 48 bits: far from an overflow, and no two runs have the same by chance.
Epoch RandomEpoch() {
  std::random_device device;
  const uint64_t high = device() & 0xffff;
  return Epoch((high << 32) + device() + 1);
}

}  // namespace

std::optional<UniqueFd> OpenIfSame(const RecordedSession& session) {
  if (session.pid <= 0) return std::nullopt;
  // Opened first: once the start time agrees, it is of that process.
  absl::StatusOr<UniqueFd> pidfd = OpenPidfd(session.pid);
  if (!pidfd.ok()) return std::nullopt;
  const absl::StatusOr<uint64_t> start = ProcessStartTime(session.pid);
  if (!start.ok() || *start != session.start_time) return std::nullopt;
  return *std::move(pidfd);
}

Recovery Recover(const std::string& state_path) {
  Recovery recovery;
  recovery.epoch = RandomEpoch();
  recovery.first_session = SessionId(1);
  absl::StatusOr<std::optional<SavedState>> state = LoadState(state_path);
  if (!state.ok()) {
    recovery.warning = absl::StrCat(
        "cannot use ", state_path, ": ", state.status().message(),
        "; what running jobs hold is known only when they come back");
    return recovery;
  }
  if (!state->has_value()) return recovery;
  recovery.last_epoch = (*state)->epoch;
  recovery.settings = std::move((*state)->settings);
  recovery.epoch = Epoch((*state)->epoch.value() + 1);
  uint64_t last = 0;
  for (RecordedSession& session : (*state)->sessions) {
    last = std::max(last, session.session.value());
    std::optional<UniqueFd> pidfd = OpenIfSame(session);
    if (!pidfd.has_value()) continue;
    for (const auto& [device, bytes] : session.held) {
      recovery.held[device] += bytes;
    }
    recovery.sessions.push_back({std::move(session), *std::move(pidfd)});
  }
  recovery.first_session = SessionId(last + 1);
  if (!recovery.sessions.empty()) recovery.held_swap = (*state)->swap;
  return recovery;
}

}  // namespace mets::app
