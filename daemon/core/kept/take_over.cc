#include "daemon/core/kept/take_over.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mets::core {
namespace {

// Orders of a core have numbers of their own: a client compares those of gates.
constexpr int kSuccessionBits = 40;

template <typename... Parts>
absl::Status Unfit(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

absl::Status AddSession(const KeptSession& kept, State& state) {
  if (kept.orphan.size() != state.devices.size()) {
    return Unfit("session ", kept.id.value(), " is of other devices");
  }
  Session& session = state.sessions.Add(kept.id, kept.domain, kept.job);
  session.presence = kept.expected ? Presence::kExpected : Presence::kLost;
  state.may_recover |= kept.expected;
  session.known_before = true;
  session.process = kept.process;
  Job& job = *session.job;
  job.uid = kept.process.uid;
  job.limit = kept.limit;
  job.guarantee = kept.guarantee;
  job.priority = kept.priority;
  job.weight = kept.weight;
  job.began = state.now;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    if (kept.orphan[i] < Bytes()) return Unfit("negative bytes");
    session.holdings[i].orphan = kept.orphan[i];
    state.devices[i].ledger.ChangeOrphan(kept.orphan[i]);
  }
  return absl::OkStatus();
}

absl::Status AddChunk(const KeptChunk& kept,
                      const std::vector<SessionId>& knowers, State& state) {
  const absl::Status unfit = Unfit("chunk ", kept.id.value(), " does not fit");
  if (kept.device >= state.devices.size()) return unfit;
  ChunkLedger& ledger = state.devices[kept.device].ledger;
  if (kept.size_class >= ledger.classes().size() ||
      ledger.classes()[kept.size_class] > ledger.creatable()) {
    return unfit;
  }
  if (kept.holder.ok()) {
    Session* holder = state.sessions.Find(kept.holder);
    if (kept.shared || holder == nullptr || holder->domain != kept.domain) {
      return unfit;
    }
    holder->holdings[kept.device].chunk_bytes +=
        ledger.classes()[kept.size_class];
  }
  ledger.TakeOver(kept, knowers);
  return absl::OkStatus();
}

absl::Status AddSlot(const KeptSlot& kept, State& state) {
  Session* session = state.sessions.Find(kept.session);
  if (session == nullptr || kept.device >= state.devices.size() ||
      !state.swap.TakeOver(kept, session->domain)) {
    return Unfit("slot ", kept.slot.id.value(), " does not fit");
  }
  // Which buffer's it is, its session says: as with the slots of a plan.
  session->holdings[kept.device].plan.slots[kept.slot.id] = PlannedSlot();
  return absl::OkStatus();
}

absl::Status AddShare(size_t index, const Share& share, State& state) {
  Session* payer = state.sessions.Find(share.payer);
  if (index >= state.devices.size() || payer == nullptr ||
      share.holders.empty()) {
    return Unfit("share ", share.id.value(), " does not fit");
  }
  Device& device = state.devices[index];
  payer->holdings[index].shared += share.size;
  if (share.orphan()) device.ledger.ChangeOrphan(share.size);
  device.shares.Add(share);
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeOver(const KeptState& kept, State* state) {
  std::map<DomainId, std::vector<SessionId>> members;
  for (const auto& [id, session] : kept.sessions) {
    METS_RETURN_IF_ERROR(AddSession(session, *state));
    if (!session.expected) members[session.domain].push_back(id);
  }
  for (const auto& [id, chunk] : kept.chunks) {
    METS_RETURN_IF_ERROR(AddChunk(chunk, members[chunk.domain], *state));
  }
  for (const auto& [id, extent] : kept.extents) {
    if (extent.size <= Bytes() || extent.size > state->swap.growable()) {
      return Unfit("extent ", id.value(), " does not fit");
    }
    state->swap.TakeOver(extent, state->now);
    for (SessionId session : members[extent.domain]) {
      state->sessions.Find(session)->extents[id] = false;
    }
  }
  for (const auto& [id, slot] : kept.slots) {
    METS_RETURN_IF_ERROR(AddSlot(slot, *state));
  }
  for (const auto& [key, share] : kept.shares) {
    METS_RETURN_IF_ERROR(AddShare(key.first, share, *state));
  }
  state->sessions.Skip(kept.ids.session);
  state->chunk_ids.Skip(kept.ids.chunk);
  state->share_ids.Skip(kept.ids.share);
  state->swap.Skip(kept.ids.extent, kept.ids.slot);
  state->succession = kept.ids.succession + 1;
  const OrderId orders(state->succession << kSuccessionBits);
  state->orders.Skip(orders);
  state->turns.SkipOrders(orders);
  for (auto& [id, session] : state->sessions.all()) {
    state->RefreshSession(id);
    session.told = KeptOf(session);
  }
  state->changes.Take();
  return absl::OkStatus();
}

}  // namespace mets::core
