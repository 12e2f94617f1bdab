#include "daemon/core/shares/held_shares.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/events/notes.h"

namespace mets::core {
namespace {

ShareBook::Key KeyOf(const Session& session, const HeldShare& held) {
  return {session.domain, held.epoch, held.id};
}

void Free(State& state, size_t index, const Share& share) {
  Device& device = state.devices[index];
  for (ChunkId chunk : share.chunks) device.ledger.Unshare(chunk);
  if (share.orphan()) device.ledger.ChangeOrphan(Bytes() - share.size);
  device.shares.Erase(share);
  device.stir = true;
}

// Its publication may be on its way still, as far as the session knows.
bool MayBePublishing(const Share& share, const Snapshot& whole) {
  const auto& chunks = whole.publishing;
  return !share.orphan() && std::find(chunks.begin(), chunks.end(),
                                      share.chunks[0]) != chunks.end();
}

void JoinOrphan(State& state, size_t index, Session& session,
                const HeldShare& held) {
  Device& device = state.devices[index];
  if (Share* known = device.shares.Find(KeyOf(session, held))) {
    if (known->holders.insert(session.id).second) device.shares.Changed(*known);
    return;
  }
  Share share;
  share.id = held.id;
  share.epoch = held.epoch;
  share.domain = session.domain;
  share.bytes = share.size = held.size;
  share.holders = {session.id};
  share.payer = session.id;
  device.ledger.ChangeOrphan(held.size);
  session.holdings[index].shared += held.size;
  device.shares.Add(std::move(share));
}

}  // namespace

void LeaveShare(State& state, size_t index, Share& share, Session& session) {
  if (share.holders.erase(session.id) == 0) return;
  const bool paid = share.payer == session.id;
  if (paid) session.holdings[index].shared -= share.size;
  if (share.holders.empty()) {
    NoteShare(state, EventKind::kShareGone, session, index, share);
    Free(state, index, share);
    return;
  }
  if (paid) {
    Session& next = *state.sessions.Find(*share.holders.begin());
    share.payer = next.id;
    next.holdings[index].shared += share.size;
    state.WatchLimit(*next.job);
  }
  state.devices[index].shares.Changed(share);
}

void LeaveAllShares(State& state, Session& session) {
  for (size_t i = 0; i < state.devices.size(); ++i) {
    for (Share* share : state.devices[i].shares.OfSession(session.id)) {
      LeaveShare(state, i, *share, session);
    }
  }
}

std::string SharesFault(const State& state, size_t index,
                        const Session& session, const Snapshot& whole) {
  const Device& device = state.devices[index];
  const auto fault = [](const HeldShare& held, const char* what) {
    return absl::StrCat("claims share ", held.id.value(), what);
  };
  Bytes unknown;
  std::set<std::pair<Epoch, ShareId>> seen;
  for (const HeldShare& held : whole.shares) {
    if (!seen.insert({held.epoch, held.id}).second) {
      return fault(held, " twice");
    }
    const Share* share = device.shares.Find(KeyOf(session, held));
    const bool old = held.epoch != state.config.epoch;
    if (share == nullptr ? !old
                         : !old && share->holders.count(session.id) == 0) {
      return fault(held, ", which it does not hold");
    }
    if (held.size <= Bytes() || held.size > kLargestBuffer) {
      return fault(held, " of an impossible size");
    }
    if (share != nullptr && share->size != held.size) {
      return fault(held, " with another size than before");
    }
    if (share == nullptr) unknown += held.size;
  }
  const Bytes most =
      std::max(device.ledger.pool(), session.holdings[index].orphan);
  if (unknown > most) {
    return absl::StrCat("claims shares of ", unknown.count(),
                        " bytes of an earlier daemon, more than the pool");
  }
  return "";
}

void ReplaceShares(State& state, size_t index, Session& session,
                   const Snapshot& whole) {
  std::set<ShareBook::Key> named;
  for (const HeldShare& held : whole.shares) {
    named.insert(KeyOf(session, held));
    if (held.epoch != state.config.epoch) {
      JoinOrphan(state, index, session, held);
    }
  }
  for (Share* share : state.devices[index].shares.OfSession(session.id)) {
    if (named.count({share->domain, share->epoch, share->id}) == 0 &&
        !MayBePublishing(*share, whole)) {
      LeaveShare(state, index, *share, session);
    }
  }
}

}  // namespace mets::core
