#include "daemon/core/tight_signal.h"

#include <algorithm>

namespace mets::core {
namespace {

absl::Time TightUntil(const State& state, const Session& session,
                      size_t device) {
  return std::max(state.devices[device].tight_until,
                  session.job->devices[device].tight_until);
}

// When a session is to be told that it is no longer tight.
absl::Time NextTightEnd(const State& state) {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [id, session] : state.sessions.all()) {
    for (size_t i = 0; i < state.devices.size(); ++i) {
      if (!session.holdings[i].told_tight) continue;
      next = std::min(next, TightUntil(state, session, i));
    }
  }
  return next;
}

}  // namespace

void SignalTight(State& state) {
  if (!state.tight_stir && state.now < state.tight_end) return;
  state.tight_stir = false;
  for (auto& [id, session] : state.sessions.all()) {
    if (!session.connected() || session.awaits_snapshot) continue;
    for (size_t i = 0; i < state.devices.size(); ++i) {
      Holding& holding = session.holdings[i];
      const bool tight = state.now < TightUntil(state, session, i);
      if (!holding.attached || holding.told_tight == tight) continue;
      holding.told_tight = tight;
      state.Send(LimitsChanged{id, state.devices[i].config.name,
                               session.job->limit, tight});
    }
  }
  state.tight_end = NextTightEnd(state);
}

}  // namespace mets::core
