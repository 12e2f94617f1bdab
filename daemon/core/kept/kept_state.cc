#include "daemon/core/kept/kept_state.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "daemon/core/state.h"

namespace mets::core {
namespace {

template <typename IdType>
void Raise(IdType id, IdType* highest) {
  *highest = std::max(*highest, id);
}

struct Applier {
  KeptState& state;

  void operator()(const KeptSession& c) {
    state.sessions[c.id] = c;
    Raise(c.id, &state.ids.session);
  }
  void operator()(const KeptChunk& c) {
    state.chunks[c.id] = c;
    Raise(c.id, &state.ids.chunk);
  }
  void operator()(const KeptExtent& c) {
    state.extents[c.id] = c;
    Raise(c.id, &state.ids.extent);
  }
  void operator()(const KeptSlot& c) {
    state.slots[c.slot.id] = c;
    Raise(c.slot.id, &state.ids.slot);
  }
  void operator()(const KeptShare& c) {
    state.shares[{c.device, c.share.key()}] = c.share;
    Raise(c.share.id, &state.ids.share);
  }
  void operator()(const KeptIds& c) { state.ids = c; }
  void operator()(const Gone<SessionId>& c) { state.sessions.erase(c.key); }
  void operator()(const Gone<ChunkId>& c) { state.chunks.erase(c.key); }
  void operator()(const Gone<ExtentId>& c) { state.extents.erase(c.key); }
  void operator()(const Gone<SlotId>& c) { state.slots.erase(c.key); }
  void operator()(const Gone<ShareKey>& c) { state.shares.erase(c.key); }
};

}  // namespace

void KeptState::Apply(const Change& change) {
  std::visit(Applier{*this}, change);
}

std::vector<Change> KeptState::All() const {
  std::vector<Change> all = {ids};
  const auto add = [&all](const auto& things) {
    for (const auto& [key, thing] : things) all.emplace_back(thing);
  };
  add(sessions);
  add(chunks);
  add(extents);
  add(slots);
  for (const auto& [key, share] : shares) {
    all.emplace_back(KeptShare{key.first, share});
  }
  return all;
}

KeptSession KeptOf(const Session& session) {
  KeptSession kept;
  kept.id = session.id;
  kept.domain = session.domain;
  kept.process = session.process;
  kept.job = session.job->name;
  kept.limit = session.job->limit;
  kept.guarantee = session.job->guarantee;
  kept.priority = session.job->priority;
  kept.weight = session.job->weight;
  kept.expected = session.presence == Presence::kExpected;
  for (const Holding& holding : session.holdings) {
    kept.orphan.push_back(holding.orphan);
  }
  return kept;
}

KeptState KeptOf(const State& state) {
  KeptState kept;
  for (const auto& [id, session] : state.sessions.all()) {
    kept.Apply(KeptOf(session));
  }
  for (size_t i = 0; i < state.devices.size(); ++i) {
    const Device& device = state.devices[i];
    device.ledger.ForEach([&](const Chunk& chunk) {
      std::optional<KeptChunk> c = device.ledger.Kept(chunk);
      if (c.has_value()) kept.Apply(*c);
    });
    for (const auto& [key, share] : device.shares.all()) {
      kept.Apply(KeptShare{i, share});
    }
  }
  for (const auto& [id, extent] : state.swap.extents()) {
    if (extent.state == ExtentState::kReady ||
        extent.state == ExtentState::kDraining) {
      kept.Apply(KeptExtent{id, extent.domain, extent.space.size()});
    }
  }
  for (const auto& [id, slot] : state.swap.slots()) {
    kept.Apply(KeptSlot{slot->slot, slot->owner.session, slot->owner.device});
  }
  kept.ids = {state.sessions.last(),    state.chunk_ids.last(),
              state.swap.last_extent(), state.swap.last_slot(),
              state.share_ids.last(),   state.succession};
  return kept;
}

}  // namespace mets::core
