// KeptState: what a core knows that outlives it.
#ifndef METS_DAEMON_CORE_KEPT_KEPT_STATE_H_
#define METS_DAEMON_CORE_KEPT_KEPT_STATE_H_

#include <map>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/kept/change.h"

namespace mets::core {

struct Session;
struct State;

// Who holds what memory: enough for a new core to go on in the same epoch, as
// if every session had lost its stream (Core::TakeOver). What else a core
// knows, sessions tell again when they come back. Plain data.
struct KeptState {
  std::map<SessionId, KeptSession> sessions;
  std::map<ChunkId, KeptChunk> chunks;
  std::map<ExtentId, KeptExtent> extents;
  std::map<SlotId, KeptSlot> slots;
  std::map<ShareKey, Share> shares;
  KeptIds ids;

  // As Core::TakeChanges gave it, in that order.
  void Apply(const Change& change);
  // Changes that make this state of an empty one.
  std::vector<Change> All() const;
};

KeptSession KeptOf(const Session& session);
KeptState KeptOf(const State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_KEPT_KEPT_STATE_H_
