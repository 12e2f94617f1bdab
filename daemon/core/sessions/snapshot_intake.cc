#include "daemon/core/sessions/snapshot_intake.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/costs/report_costs.h"
#include "daemon/core/costs/totals.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/sessions/session_exit.h"
#include "daemon/core/shares/held_shares.h"

namespace mets::core {
namespace {

constexpr size_t kMostParts = 4096;

}  // namespace

std::string SnapshotIntake::PartFault(const Session& session,
                                      const Snapshot& part) const {
  size_t index = 0;
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    if (state_.devices[i].config.name == part.device) index = i + 1;
  }
  if (part.device.empty()) index = 1;
  if (index == 0) {
    return absl::StrCat("sent a snapshot of unknown device '", part.device,
                        "'");
  }
  const Bytes pool = state_.devices[index - 1].ledger.pool();
  const Bytes recorded = session.holdings[index - 1].orphan;
  if (part.orphan < Bytes() || part.orphan > std::max(pool, recorded)) {
    return absl::StrCat("claims ", part.orphan.count(),
                        " bytes of an earlier daemon, more than the pool");
  }
  if (part.orphan_swap < Bytes() || part.orphan_swap > GiB(int64_t{1} << 20)) {
    return absl::StrCat("claims ", part.orphan_swap.count(),
                        " bytes of swap space of an earlier daemon");
  }
  size_t buffers = part.buffers.size();
  const auto chunks_of = [](const Snapshot& s) {
    return s.chunks.size() + s.publishing.size();
  };
  size_t chunks = chunks_of(part);
  size_t shares = part.shares.size();
  for (const Snapshot& earlier : session.parts) {
    buffers += earlier.buffers.size();
    chunks += chunks_of(earlier);
    shares += earlier.shares.size();
  }
  const size_t most = state_.config.max_buffers_per_session;
  const size_t most_shares = 2 * state_.config.max_shares_per_domain;
  if (shares > most_shares) {
    return absl::StrCat("sent a snapshot of more than ", most_shares,
                        " shares");
  }
  if (session.parts.size() >= kMostParts) return "sent too many parts";
  if (buffers > most || chunks > most) {
    return absl::StrCat("sent a snapshot of more than ", most, " entries");
  }
  static const auto& none = *new Holding();
  for (const BufferReport& report : part.buffers) {
    std::string fault = reports_.Fault(report, none);
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string SnapshotIntake::WholeFault(const Session& session) const {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    const Snapshot whole = Merge(session, i);
    for (ChunkId chunk : whole.chunks) {
      if (state_.devices[i].ledger.FindHeld(chunk, session.id) == nullptr) {
        return absl::StrCat("claims chunk ", chunk.value(),
                            ", which is not its own");
      }
    }
    std::string fault = SharesFault(state_, i, session, whole);
    if (!fault.empty()) return fault;
    std::set<BufferId> buffers;
    for (const BufferReport& report : whole.buffers) {
      if (!buffers.insert(report.id).second) {
        return absl::StrCat("sent buffer ", report.id.value(), " twice");
      }
    }
  }
  return "";
}

void SnapshotIntake::OnSnapshot(const Snapshot& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return;
  std::string fault = session->awaits_snapshot
                          ? PartFault(*session, input)
                          : "sent a snapshot that nobody expected";
  if (fault.empty()) {
    session->parts.push_back(input);
    if (!input.last) return;
    fault = WholeFault(*session);
  }
  if (!fault.empty()) {
    RefuseSession(state_, *session, std::move(fault));
    return;
  }
  for (size_t i = 0; i < state_.devices.size(); ++i) Apply(*session, i);
  session->parts.clear();
  session->awaits_snapshot = false;
  if (std::exchange(session->recovering, false)) {
    NoteSession(state_, EventKind::kCameBack, *session);
  }
  state_.tight_stir = true;
  retirement_.AskAgain(*session);
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    // It may remember what held before.
    if (!session->holdings[i].attached) continue;
    state_.Send(LimitsChanged{session->id, state_.devices[i].config.name,
                              session->job->limit, false});
  }
  state_.StirAll();
}

Snapshot SnapshotIntake::Merge(const Session& session, size_t device) const {
  Snapshot whole;
  whole.device = state_.devices[device].config.name;
  for (const Snapshot& part : session.parts) {
    if (part.device != whole.device && !(part.device.empty() && device == 0)) {
      continue;
    }
    whole.chunks.insert(whole.chunks.end(), part.chunks.begin(),
                        part.chunks.end());
    whole.buffers.insert(whole.buffers.end(), part.buffers.begin(),
                         part.buffers.end());
    whole.shares.insert(whole.shares.end(), part.shares.begin(),
                        part.shares.end());
    whole.publishing.insert(whole.publishing.end(), part.publishing.begin(),
                            part.publishing.end());
    whole.orphan = std::max(whole.orphan, part.orphan);
    whole.orphan_swap = std::max(whole.orphan_swap, part.orphan_swap);
    whole.cached = std::max(whole.cached, part.cached);
    RaiseTotals(part.totals, &whole.totals);
  }
  return whole;
}

void SnapshotIntake::Apply(Session& session, size_t index) {
  const Snapshot whole = Merge(session, index);
  Holding& holding = session.holdings[index];
  ChunkLedger& ledger = state_.devices[index].ledger;
  absl::flat_hash_set<ChunkId> kept(whole.chunks.begin(), whole.chunks.end());
  kept.insert(whole.publishing.begin(), whole.publishing.end());
  for (const Chunk* chunk : ledger.HeldBy(session.id)) {
    if (kept.contains(chunk->id)) continue;
    holding.chunk_bytes -= chunk->size;
    ledger.Release(chunk->id);
  }
  // Its descriptors of what has just become free may be gone.
  ledger.MarkUncertain(session.id);
  ledger.ChangeOrphan(whole.orphan - holding.orphan);
  holding.orphan = whole.orphan;
  holding.orphan_swap = whole.orphan_swap;
  ReplaceShares(state_, index, session, whole);
  holding.cached = std::min(std::max(whole.cached, Bytes()), holding.own());
  holding.pinned = Bytes();
  holding.trim_from = absl::InfinitePast();
  NoteCosts(state_, index, session, whole.totals);
  holding.steps.Forget();
  ReplaceBuffers(session, index, whole);
}

void SnapshotIntake::ReplaceBuffers(Session& session, size_t index,
                                    const Snapshot& whole) {
  BufferTable& buffers = session.holdings[index].buffers;
  state_.devices[index].victims.RemoveAll(session.id, buffers);
  buffers.Clear();
  // What lies in the slots of plans, its buffers own.
  const PlanBook plan = std::exchange(session.holdings[index].plan, PlanBook());
  std::set<SlotId> named;
  for (const BufferReport& report : whole.buffers) {
    if (report.freed) continue;
    const SlotEntry* slot = state_.swap.Find(report.slot);
    const bool planned =
        plan.slots.count(report.slot) > 0 &&
        (report.state == BufferState::kSwapped || report.clean);
    if (slot != nullptr && slot->owner.session == session.id &&
        slot->owner.device == index &&
        (slot->owner.buffer == report.id || planned) &&
        named.count(report.slot) == 0) {
      state_.swap.SetBuffer(report.slot, report.id);
      buffers.FindOrAdd(report.id, report.size).slot = report.slot;
      named.insert(report.slot);
    }
    reports_.Apply(session, index, report);
  }
  std::vector<SlotId> unnamed;
  for (const auto& [id, slot] : state_.swap.slots()) {
    // A slot that its buffer gave back while it was applied is gone already.
    if (slot->owner.session == session.id && slot->owner.device == index &&
        named.count(id) == 0) {
      unnamed.push_back(id);
    }
  }
  for (SlotId slot : unnamed) state_.swap.Free(slot);
}

}  // namespace mets::core
