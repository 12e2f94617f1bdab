#include "daemon/core/sessions/session_exit.h"

#include <utility>
#include <vector>

#include "daemon/core/costs/report_costs.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/operating/job_end.h"
#include "daemon/core/requests/request_server.h"
#include "daemon/core/shares/held_shares.h"

namespace mets::core {
namespace {

void DropRequests(State& state, Session& session) {
  for (size_t i = 0; i < state.devices.size(); ++i) {
    Device& device = state.devices[i];
    for (Request* request : device.queue.OfSession(session.id)) {
      RollBack(state, i, *request);
      if (request->waited) {
        session.job->devices[i].wait_times.Add(state.now - request->arrived);
      }
      device.queue.Remove(request->number);
    }
    device.overdraft.Drop(session.id);
  }
}

}  // namespace

void Silence(State& state, Session& session) {
  DropRequests(state, session);
  for (const Order& order : state.orders.TakeSession(session.id)) {
    if (order.kind != OrderKind::kEvict) continue;
    state.devices[order.device].handover.End(state.now);
    BufferTable& buffers = session.holdings[order.device].buffers;
    for (const Order::Candidate& candidate : order.candidates) {
      Buffer* buffer = buffers.Find(candidate.buffer);
      if (buffer == nullptr) continue;
      buffer->order = OrderId();
      state.UpdateVictim(session, order.device, *buffer);
    }
  }
  session.unresponsive = false;
  session.parts.clear();
  for (Holding& holding : session.holdings) {
    holding.told_tight = false;
    holding.asked_for_life = false;
    holding.lent.clear();
  }
  // Its gates are open, or nobody is there.
  state.turns.Forget(session.id);
  state.turns_stir = true;
  state.tight_stir = true;
  state.StirAll();
}

void RefuseSession(State& state, Session& session, std::string reason) {
  Silence(state, session);
  NoteSession(state, EventKind::kRefused, session, reason);
  session.presence = Presence::kRefused;
  session.awaits_snapshot = false;
  session.recovering = false;
  for (size_t i = 0; i < state.devices.size(); ++i) {
    Holding& holding = session.holdings[i];
    if (holding.attached) NoteFailure(*session.job, i, Failure::kProtocol);
    holding.attached = false;
  }
  state.Send(Refuse{session.id, std::move(reason)});
}

void EndSession(State& state, Retirement& retirement, Session& session) {
  Silence(state, session);
  NoteSession(state, EventKind::kEnded, session);
  const SessionId id = session.id;
  std::vector<bool> had;
  for (const Holding& holding : session.holdings) {
    had.push_back(!holding.bytes().is_zero());
  }
  LeaveAllShares(state, session);
  for (size_t i = 0; i < state.devices.size(); ++i) {
    Holding& holding = session.holdings[i];
    ChunkLedger& ledger = state.devices[i].ledger;
    for (const Chunk* chunk : ledger.HeldBy(id)) ledger.Release(chunk->id);
    ledger.ChangeOrphan(Bytes() - holding.orphan);
    ledger.ForgetSession(id);
  }
  std::vector<SlotId> slots;
  for (const auto& [slot, entry] : state.swap.slots()) {
    if (entry->owner.session == id) slots.push_back(slot);
  }
  for (SlotId slot : slots) state.swap.Free(slot);
  const Job& job = *session.job;  // It outlives its last session.
  state.RemoveSession(session);
  if (job.sessions.empty()) TellJobEnd(state, job, had);
  retirement.OnSessionGone();
  state.StirAll();
}

}  // namespace mets::core
