#include "daemon/core/invariants.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/status_report.h"

namespace mets::core {
namespace {

template <typename... Parts>
absl::Status Broken(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

absl::Status CheckHoldings(const State& state, size_t index) {
  const ChunkLedger& ledger = state.devices[index].ledger;
  std::map<SessionId, Bytes> held;
  ledger.ForEach([&](const Chunk& chunk) { held[chunk.holder] += chunk.size; });
  Bytes granted, orphan;
  for (const auto& [key, share] : state.devices[index].shares.all()) {
    if (share.orphan()) orphan += share.size;
  }
  for (const auto& [id, session] : state.sessions.all()) {
    const Holding& holding = session.holdings[index];
    const Bytes sum = held[id];
    if (sum != holding.chunk_bytes || holding.orphan < Bytes() ||
        holding.cached < Bytes() || holding.cached > holding.own()) {
      return Broken("session ", id.value(), ": chunks of ", sum.count(),
                    " bytes, booked ", holding.chunk_bytes.count(), ", orphan ",
                    holding.orphan.count(), ", cached ",
                    holding.cached.count());
    }
    granted += sum;
    orphan += holding.orphan;
  }
  if (granted != ledger.bytes(ChunkState::kGranted) ||
      orphan != ledger.orphan()) {
    return Broken("sessions hold ", granted.count(), " + ", orphan.count(),
                  " orphan, the ledger says ",
                  ledger.bytes(ChunkState::kGranted).count(), " + ",
                  ledger.orphan().count());
  }
  return absl::OkStatus();
}

absl::Status CheckShare(const State& state, size_t index, const Share& share,
                        Bytes* chunks, std::map<SessionId, Bytes>* paid) {
  Bytes size = share.orphan() ? share.size : Bytes();
  for (ChunkId id : share.chunks) {
    const Chunk* chunk = state.devices[index].ledger.Find(id);
    if (chunk == nullptr || chunk->state != ChunkState::kShared ||
        chunk->domain != share.domain) {
      return Broken("chunk ", id.value(), " is not share ", share.id.value(),
                    "'s");
    }
    size += chunk->size;
    *chunks += chunk->size;
  }
  if (size != share.size || share.bytes > size ||
      share.holders.count(share.payer) == 0) {
    return Broken("share ", share.id.value(), " of ", share.size.count(),
                  " bytes has ", size.count(), ", or its payer ",
                  share.payer.value(), " does not hold it");
  }
  for (SessionId id : share.holders) {
    const auto holder = state.sessions.all().find(id);
    if (holder == state.sessions.all().end() ||
        holder->second.domain != share.domain) {
      return Broken("share ", share.id.value(), " is held by session ",
                    id.value(), ", which is gone or a stranger");
    }
  }
  (*paid)[share.payer] += share.size;
  return absl::OkStatus();
}

absl::Status CheckShares(const State& state, size_t index) {
  const Device& device = state.devices[index];
  Bytes chunks;
  std::map<SessionId, Bytes> paid;
  for (const auto& [key, share] : device.shares.all()) {
    METS_RETURN_IF_ERROR(CheckShare(state, index, share, &chunks, &paid));
  }
  if (chunks != device.ledger.bytes(ChunkState::kShared)) {
    return Broken("shares have ", chunks.count(), " bytes, the ledger says ",
                  device.ledger.bytes(ChunkState::kShared).count());
  }
  for (const auto& [id, session] : state.sessions.all()) {
    if (session.holdings[index].shared == paid[id]) continue;
    return Broken("session ", id.value(), " pays for ", paid[id].count(),
                  " shared bytes, booked ",
                  session.holdings[index].shared.count());
  }
  return absl::OkStatus();
}

absl::Status CheckRequests(const State& state, size_t index) {
  const Device& device = state.devices[index];
  std::map<const Job*, Bytes> pending;
  Bytes reserved;
  for (const auto& [number, request] : device.queue.all()) {
    auto session = state.sessions.all().find(request.session);
    if (session == state.sessions.all().end()) {
      return Broken("request ", number, " has no session");
    }
    int creating = 0;
    for (ChunkId id : request.chunks) {
      const Chunk* chunk = device.ledger.Find(id);
      if (chunk == nullptr || chunk->request != number) {
        return Broken("request ", number, " lacks chunk ", id.value());
      }
      creating += chunk->state == ChunkState::kCreating;
      if (chunk->state == ChunkState::kReserved) reserved += chunk->size;
      pending[session->second.job] += chunk->size;
    }
    if (creating != request.creating || request.assembling != (creating > 0)) {
      return Broken("request ", number, " waits for ", request.creating,
                    " chunks, not ", creating);
    }
  }
  if (reserved != device.ledger.bytes(ChunkState::kReserved)) {
    return Broken("requests have ", reserved.count(), " reserved bytes of ",
                  device.ledger.bytes(ChunkState::kReserved).count());
  }
  for (const auto& [key, job] : state.sessions.jobs()) {
    if (pending[&job] != job.devices[index].pending) {
      return Broken("job ", job.name, " has ", pending[&job].count(),
                    " bytes pending, booked ",
                    job.devices[index].pending.count());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBuffers(const State& state) {
  size_t owned = 0;
  for (const auto& [id, session] : state.sessions.all()) {
    for (const Holding& holding : session.holdings) {
      for (const auto& [buffer_id, buffer] : holding.buffers.all()) {
        const SlotEntry* slot = state.swap.Find(buffer.slot);
        if (buffer.slot.ok() &&
            (slot == nullptr || slot->owner.buffer != buffer_id ||
             slot->owner.session != id)) {
          return Broken("buffer ", buffer_id.value(), " does not own slot ",
                        buffer.slot.value());
        }
        owned += buffer.slot.ok();
        const SlotEntry* planned = state.swap.Find(buffer.planned);
        if (buffer.planned.ok() &&
            (planned == nullptr || planned->owner.buffer != buffer_id ||
             planned->state != SlotState::kFull ||
             buffer.state != BufferState::kSwapped ||
             holding.plan.slots.count(buffer.planned) == 0)) {
          return Broken("buffer ", buffer_id.value(), " does not lie in slot ",
                        buffer.planned.value(), " of a plan");
        }
        owned += buffer.planned.ok();
        const Order* order = state.orders.Find(buffer.order);
        if (buffer.order.ok() && order == nullptr) {
          return Broken("buffer ", buffer_id.value(), " is in ended order ",
                        buffer.order.value());
        }
      }
    }
  }
  size_t unordered = 0;
  for (const auto& [id, slot] : state.swap.slots()) {
    const auto owner = state.sessions.all().find(slot->owner.session);
    if (owner == state.sessions.all().end()) {
      return Broken("slot ", id.value(), " has no session");
    }
    const Holding& holding = owner->second.holdings[slot->owner.device];
    if (!slot->owner.buffer.ok() && holding.plan.slots.count(id) == 0) {
      return Broken("slot ", id.value(), " is neither a buffer's nor a plan's");
    }
    unordered += slot->state != SlotState::kOrdered;
  }
  if (unordered > owned) {
    return Broken(unordered, " slots in use, ", owned, " buffers own one");
  }
  return absl::OkStatus();
}

absl::Status CheckVictims(const State& state, size_t index) {
  const VictimIndex& victims = state.devices[index].victims;
  METS_RETURN_IF_ERROR(victims.Check());
  for (const auto& [id, session] : state.sessions.all()) {
    METS_RETURN_IF_ERROR(
        victims.CheckOwner(state.DescribeOwner(session, index)));
    const bool listed = state.devices[index].cachers.count(id) > 0;
    if (listed == session.holdings[index].cached.is_zero()) {
      return Broken("session ", id.value(), " has cached memory and is not ",
                    "listed for it, or the other way round");
    }
    for (const auto& [buffer_id, buffer] :
         session.holdings[index].buffers.all()) {
      METS_RETURN_IF_ERROR(victims.CheckBuffer(session, buffer));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSums(const State& state) {
  for (const DeviceStatus& d : BuildStatus(state).devices) {
    const Bytes sum = d.free + d.cached + d.resident + d.moving + d.draining;
    if (sum == d.pool || (sum > d.pool && d.orphan > Bytes())) continue;
    return Broken(d.id, ": free ", d.free.count(), " + cached ",
                  d.cached.count(), " + resident ", d.resident.count(),
                  " + moving ", d.moving.count(), " + draining ",
                  d.draining.count(), " != pool ", d.pool.count());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckState(const State& state) {
  for (size_t i = 0; i < state.devices.size(); ++i) {
    METS_RETURN_IF_ERROR(state.devices[i].ledger.Check());
    METS_RETURN_IF_ERROR(CheckHoldings(state, i));
    METS_RETURN_IF_ERROR(CheckShares(state, i));
    METS_RETURN_IF_ERROR(CheckRequests(state, i));
    METS_RETURN_IF_ERROR(CheckVictims(state, i));
  }
  METS_RETURN_IF_ERROR(state.turns.Check(state.now));
  METS_RETURN_IF_ERROR(state.swap.Check());
  METS_RETURN_IF_ERROR(CheckBuffers(state));
  return CheckSums(state);
}

}  // namespace mets::core
