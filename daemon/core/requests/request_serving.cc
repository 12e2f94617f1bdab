// How RequestServer serves a device's queue.
#include <algorithm>
#include <utility>

#include "daemon/core/costs/report_costs.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/reports/denial_text.h"
#include "daemon/core/requests/request_server.h"
#include "daemon/core/scheduling/quantum_room.h"

namespace mets::core {
namespace {

// How long the overdraft token's holder may wait before others, who pin
// buffers, go first: it may be waiting for those. Not at once, or one that
// comes back again and again would starve it.
constexpr absl::Duration kTokenTrial = absl::Milliseconds(100);
// A request that has waited for so long is worth an event.
constexpr absl::Duration kLongWait = absl::Seconds(1);

bool WaitsInVain(const Request& request, absl::Time now) {
  return now - std::max(request.arrived, request.token_since) >= kTokenTrial;
}

}  // namespace

void RequestServer::Serve(size_t index) {
  Device& device = state_.devices[index];
  device.retry_at = absl::InfiniteFuture();
  if (device.queue.all().empty()) return;
  if (state_.Recovering()) {
    device.retry_at = state_.grace_end();
    return;
  }
  YieldToken(device);
  LetPinnedPass(index);
  bool blocked = false;
  for (Request* request : device.queue.Waiting(device.overdraft.holder())) {
    ServeOne(index, *request, &blocked);
  }
}

void RequestServer::ServeOne(size_t index, Request& request, bool* blocked) {
  Session& session = *state_.sessions.Find(request.session);
  if (!session.serves()) return;
  request.hopeful = false;
  bool mine = false;  // Served, or answered.
  if (!TakeToken(index, request)) {
    Wait(index, request, false);
  } else if (request.ranges.empty()) {
    Grant(index, request);
    mine = true;
  } else if (!session.job->limit.is_zero() &&
             request.total > session.job->limit) {
    // The limit was lowered meanwhile.
    if (!request.no_wait) NoteFailure(*session.job, index, Failure::kLimit);
    Answer(
        state_, index, request,
        DenyLargerThanLimit(state_, index, request.id, session, request.total));
    mine = true;
  } else if (HeldBack(index, request, session)) {
    Wait(index, request, false);
    *blocked = true;
  } else if (!WithinLimit(index, request, *session.job)) {
    Wait(index, request, false);
  } else if (*blocked) {
    Wait(index, request, true);
  } else {
    mine = Assemble(index, request, session);
    *blocked = !mine;
  }
  if (!mine && request.no_wait && !request.hopeful) {
    Answer(state_, index, request,
           DenyOverdue(state_, index, request, session));
  }
}

void RequestServer::YieldToken(Device& device) {
  if (!device.overdraft.held()) return;
  const OpOfSession holder = device.overdraft.holder();
  std::vector<Request*> waiting = device.queue.Waiting(OpOfSession());
  const bool wanted =
      std::any_of(waiting.begin(), waiting.end(), [&](const Request* r) {
        return r->pinned && !r->has_token && !(r->asker() == holder);
      });
  if (!wanted) return;
  for (Request* request : waiting) {
    if (!request->has_token || request->pinned ||
        !WaitsInVain(*request, state_.now)) {
      continue;
    }
    device.overdraft.GiveBack(holder.session);
    request->has_token = false;
  }
}

void RequestServer::LetPinnedPass(size_t index) {
  Device& device = state_.devices[index];
  const OpOfSession holder = device.overdraft.holder();
  if (!device.overdraft.held()) return;
  const std::vector<Request*> waiting = device.queue.Waiting(OpOfSession());
  const bool stuck =
      std::any_of(waiting.begin(), waiting.end(), [&](const Request* r) {
        return r->asker() == holder && WaitsInVain(*r, state_.now);
      });
  if (!stuck) return;
  for (Request* request : waiting) {
    if (!request->pinned || request->ranges.empty() ||
        request->asker() == holder) {
      continue;
    }
    const Session& session = *state_.sessions.Find(request->session);
    if (!session.serves() || !WithinLimit(index, *request, *session.job)) {
      continue;
    }
    const Layout layout =
        LayOut(device, *request, session, PieceBound::kUnbounded);
    if (layout.missing.is_zero()) Reserve(index, *request, layout);
  }
}

bool RequestServer::TakeToken(size_t index, Request& request) {
  if (request.overdraft && !request.has_token) {
    request.has_token =
        state_.devices[index].overdraft.TryTake(request.asker());
    request.token_since = state_.now;
    return request.has_token;
  }
  return true;
}

// Those that others may wait for, and those that must not wait, go on.
bool RequestServer::HeldBack(size_t index, Request& request,
                             const Session& session) {
  Device& device = state_.devices[index];
  if (request.no_wait || request.overdraft || request.pinned ||
      device.overdraft.holder() == request.asker()) {
    return false;
  }
  const absl::Time from = MovesFrom(state_, index, request.priority);
  const absl::Duration most =
      std::min(state_.config.max_wait, request.deadline - request.arrived) / 2;
  if (from <= state_.now || state_.now - request.arrived >= most) return false;
  const Job& job = *session.job;
  const Bytes free =
      device.ledger.creatable() + device.ledger.bytes(ChunkState::kFree);
  const bool moves =
      !session.holdings[index].buffers.swapped().is_zero() ||
      free < request.total ||
      (!job.limit.is_zero() &&
       state_.sessions.JobBytes(job, index) + request.total > job.limit);
  if (!moves) return false;
  request.held_back = true;
  device.retry_at = std::min(device.retry_at, from);
  return true;
}

bool RequestServer::WithinLimit(size_t index, Request& request, Job& job) {
  if (job.limit.is_zero() ||
      state_.sessions.JobBytes(job, index) + request.total <= job.limit) {
    return true;
  }
  state_.tight_stir |= job.devices[index].tight_until <= state_.now;
  job.devices[index].tight_until = state_.now + kTightFor;
  const Bytes missing = reclaimer_.EnforceLimit(
      job, index, request.total, !request.no_wait, &request.tried);
  request.hopeful = missing.is_zero();
  return false;
}

Layout RequestServer::LayOut(const Device& device, const Request& request,
                             const Session& session, PieceBound bound) const {
  return PlanLayout(device.ledger, session.domain, session.id, request.ranges,
                    CanCreate(device) ? device.ledger.creatable() : Bytes(),
                    bound);
}

bool RequestServer::Assemble(size_t index, Request& request,
                             const Session& session) {
  Device& device = state_.devices[index];
  Layout layout = LayOut(
      device, request, session,
      request.fewest_chunks ? PieceBound::kFewest : PieceBound::kBounded);
  if (!layout.missing.is_zero()) {
    Bytes need = layout.missing - retirement_.Coming(index);
    if (need > Bytes() && CanCreate(device)) {
      need -= TurnOver(index, need, session.domain, layout);
    }
    if (need <= Bytes()) {  // It is free, only not in the right pieces yet.
      request.hopeful = true;
      Wait(index, request, false);
      return false;
    }
    // Pieces that TurnOver has taken are no longer there.
    Layout rest = LayOut(device, request, session, PieceBound::kUnbounded);
    if (!rest.missing.is_zero()) {
      MakeRoom(index, request, session, rest);
      return false;
    }
    layout = std::move(rest);
  }
  Reserve(index, request, layout);
  return true;
}

void RequestServer::MakeRoom(size_t index, Request& request,
                             const Session& session, const Layout& layout) {
  Wait(index, request, true);
  if (!request.no_wait) {
    MakeQuantumRoom(state_, reclaimer_, index, *session.job);
  }
  Bytes need =
      layout.missing - retirement_.Coming(index) - state_.orders.Coming(index);
  if (need > Bytes()) {
    ReclaimGoal goal{index, need, session.job, nullptr, &request.tried};
    if (request.no_wait) goal.asker = session.id;
    need -= reclaimer_.Reclaim(goal, !request.no_wait);
  }
  request.hopeful = need <= Bytes();
}

Bytes RequestServer::TurnOver(size_t index, Bytes need, DomainId domain,
                              const Layout& layout) {
  const ChunkLedger& ledger = state_.devices[index].ledger;
  absl::flat_hash_set<ChunkId> keep;
  for (const Layout::Piece& piece : layout.pieces) {
    if (piece.chunk.ok()) keep.insert(piece.chunk);
  }
  Bytes taken;
  for (bool own : {false, true}) {
    while (taken < need) {
      const Chunk* chunk =
          NextToRetire(ledger, domain, own, need - taken, keep);
      if (chunk == nullptr) break;
      taken += chunk->size;
      retirement_.RetireChunk(index, chunk->id);
    }
  }
  return taken;
}

// The smallest chunk that is enough, else the largest there is.
const Chunk* RequestServer::NextToRetire(
    const ChunkLedger& ledger, DomainId domain, bool own, Bytes need,
    const absl::flat_hash_set<ChunkId>& keep) const {
  const Chunk* best = nullptr;
  const auto better = [&](const Chunk& chunk) {
    if (best == nullptr) return true;
    if (best->size >= need)
      return chunk.size >= need && chunk.size < best->size;
    return chunk.size > best->size;
  };
  for (DomainId candidate : ledger.Domains()) {
    if ((candidate == domain) != own) continue;
    for (size_t i = 0; i < ledger.classes().size(); ++i) {
      for (const Chunk* chunk : ledger.Free(candidate, i)) {
        if (!better(*chunk)) break;  // Of one size, all are alike.
        if (keep.count(chunk->id) > 0 || !retirement_.CanRetire(*chunk)) {
          continue;
        }
        best = chunk;
      }
    }
  }
  return best;
}

void RequestServer::Reserve(size_t index, Request& request,
                            const Layout& layout) {
  Device& device = state_.devices[index];
  Job& job = *state_.sessions.Find(request.session)->job;
  request.assembling = true;
  request.range_chunks = layout.range_pieces;
  for (const Layout::Piece& piece : layout.pieces) {
    ChunkId chunk = piece.chunk;
    const Bytes size = device.ledger.classes()[piece.size_class];
    if (chunk.ok()) {
      device.ledger.Reserve(chunk, request.number);
    } else {
      chunk = state_.chunk_ids.Next();
      device.ledger.StartCreating(chunk, piece.size_class,
                                  state_.sessions.Find(request.session)->domain,
                                  request.number);
      state_.Send(CreateChunk{device.config.id, chunk, size});
      ++request.creating;
    }
    request.chunks.push_back(chunk);
    job.devices[index].pending += size;
  }
  if (request.creating == 0) Grant(index, request);
}

void RequestServer::Wait(size_t index, Request& request, bool tight) {
  Device& device = state_.devices[index];
  if (tight) {
    state_.tight_stir |= device.tight_until <= state_.now;
    device.tight_until = state_.now + kTightFor;
  }
  device.retry_at = std::min(device.retry_at, state_.now + kRetryAfter);
  Session& session = *state_.sessions.Find(request.session);
  if (!request.noted && state_.now - request.arrived >= kLongWait) {
    request.noted = true;
    state_.turns_stir = true;
    NoteRequest(state_, EventKind::kWaits, *session.job, index, request,
                Explain(state_, index, request, *session.job).why);
  }
  if (request.waited) return;
  request.waited = true;
  ++session.job->devices[index].waits;
}

}  // namespace mets::core
