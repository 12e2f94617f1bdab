#include "daemon/core/victims/fetch_victims.h"

#include "daemon/core/victims/fetch.h"

namespace mets::core {

void FetchVictims(const State& state, size_t device,
                  absl::Span<const VictimWalk::Candidate> candidates) {
  // In rounds: each reads what the one before has fetched.
  for (const VictimWalk::Candidate& c : candidates) Fetch(c.session());
  for (const VictimWalk::Candidate& c : candidates) {
    // What own() and bytes() look at stands at its beginning.
    Fetch(c.session().holdings[device].chunk_bytes);
    Fetch(c.session().holdings[device].shared);
    Fetch(*c.session().job);
    if (c.buffer->slot.ok()) Fetch(*state.swap.Find(c.buffer->slot));
  }
  for (const VictimWalk::Candidate& c : candidates) {
    const Job& job = *c.session().job;
    Fetch(job.devices[device].pending);
    Fetch(*job.sessions.begin());
    if (!c.buffer->slot.ok()) continue;
    const SlotEntry& slot = *state.swap.Find(c.buffer->slot);
    if (slot.state == SlotState::kClean) Fetch(*slot.clean);
  }
}

}  // namespace mets::core
