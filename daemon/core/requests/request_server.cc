#include "daemon/core/requests/request_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "daemon/core/chunks/lending.h"
#include "daemon/core/costs/report_costs.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/reports/denial_text.h"

namespace mets::core {
namespace {

constexpr size_t kMostRanges = 256;
constexpr char kCancelled[] = "cancelled";
constexpr absl::Duration kCreateAgain = absl::Milliseconds(100);
// Shorter waits are counted, but no events.
constexpr absl::Duration kShortWait = absl::Milliseconds(10);

void Close(State& state, size_t device, const Request& request) {
  JobOnDevice& job = state.sessions.Find(request.session)->job->devices[device];
  if (request.waited) job.wait_times.Add(state.now - request.arrived);
  state.devices[device].queue.Remove(request.number);
  state.devices[device].stir = true;
}

// The sum of the ranges, each rounded up; negative when one of them or the sum
// is out of bounds.
Bytes RoundedTotal(const std::vector<Bytes>& ranges, Bytes unit, Bytes most) {
  Bytes total;
  for (Bytes range : ranges) {
    if (range <= Bytes()) return Bytes(-1);
    // Large enough to be refused, small enough not to overflow.
    total += std::min(range, most + unit).RoundUpTo(unit);
  }
  return total;
}

}  // namespace

void RollBack(State& state, size_t device, Request& request) {
  Device& d = state.devices[device];
  Job& job = *state.sessions.Find(request.session)->job;
  for (ChunkId chunk : request.chunks) {
    job.devices[device].pending -= d.ledger.Find(chunk)->size;
    d.ledger.Unreserve(chunk);
  }
  request.chunks.clear();
  request.range_chunks.clear();
  request.creating = 0;
  request.assembling = false;
  d.stir = true;
}

void Answer(State& state, size_t device, Request& request, Deny deny) {
  RollBack(state, device, request);
  if (request.has_token) {
    state.devices[device].overdraft.GiveBack(request.session);
  }
  // One that does not wait is mostly a client's question whether it has to.
  if (deny.reason != kCancelled && !request.no_wait) {
    NoteRequest(state, EventKind::kDenied,
                *state.sessions.Find(request.session)->job, device, request,
                deny.reason);
  }
  Close(state, device, request);
  state.Send(std::move(deny));
}

void RequestServer::OnAcquire(const Acquire& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return;
  for (Device& device : state_.devices) {
    // Asked again before the answer: one answer is enough.
    if (device.queue.Find(input.session, input.request) != nullptr) return;
  }
  size_t index = 0;
  Bytes total;
  if (Refused(input, *session, &index, &total)) return;
  Device& device = state_.devices[index];
  Request request;
  request.session = input.session;
  request.id = input.request;
  request.priority = session->job->priority;
  for (Bytes range : input.ranges) {
    request.ranges.push_back(range.RoundUpTo(device.ledger.classes()[0]));
  }
  request.total = total;
  request.overdraft = input.overdraft;
  request.op = input.op;
  request.fewest_chunks = input.fewest_chunks;
  request.pinned = input.pinned && input.overdraft;
  request.no_wait = input.wait <= absl::ZeroDuration();
  request.arrived = state_.now;
  request.deadline =
      state_.now + (request.no_wait ? state_.config.order_timeout : input.wait);
  device.queue.Add(std::move(request));
  device.stir = true;
  session->job->last_active = state_.now;
  if (!std::exchange(session->holdings[index].asked, true)) {
    state_.turns_stir = true;
  }
}

bool RequestServer::Refused(const Acquire& input, Session& session,
                            size_t* device, Bytes* total) {
  const auto send = [&](Deny deny) {
    Request request;
    request.total = std::max(*total, Bytes());
    request.arrived = state_.now;
    NoteRequest(state_, EventKind::kDenied, *session.job, *device, request,
                deny.reason);
    state_.Send(std::move(deny));
    return true;
  };
  const auto deny = [&](std::string reason) {
    return send(DenyPlain(session.id, input.request, std::move(reason), true));
  };
  const Device* d = state_.FindDevice(input.device, device);
  if (d == nullptr || !session.holdings[*device].attached) {
    return deny(absl::StrCat("device '", input.device, "' is not attached"));
  }
  if (input.ranges.empty() && !input.overdraft) {
    return deny("the request asks for nothing");
  }
  if (input.ranges.size() > kMostRanges) {
    return deny(absl::StrCat("the request has ", input.ranges.size(),
                             " ranges; at most ", kMostRanges, " are allowed"));
  }
  const Bytes pool = d->ledger.pool();
  *total = RoundedTotal(input.ranges, d->ledger.classes()[0], pool);
  if (*total < Bytes()) return deny("the request has a range without bytes");
  if (*total > pool) {
    Bytes asked;
    NoteFailure(*session.job, *device, Failure::kPool);
    for (Bytes range : input.ranges) {
      asked += std::min(range, Bytes(int64_t{1} << 50));
    }
    return send(
        DenyLargerThanPool(state_, *device, input.request, session, asked));
  }
  const Bytes limit = session.job->limit;
  if (!limit.is_zero() && *total > limit) {
    NoteFailure(*session.job, *device, Failure::kLimit);
    return send(
        DenyLargerThanLimit(state_, *device, input.request, session, *total));
  }
  const size_t most = state_.config.max_requests_per_session;
  if (d->queue.CountOf(session.id) >= most) {
    return deny(absl::StrCat("the session has ", most,
                             " requests without an answer already"));
  }
  return false;
}

void RequestServer::OnCancel(const Cancel& input) {
  if (state_.Speaker(input.session) == nullptr) return;
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    Request* request =
        state_.devices[i].queue.Find(input.session, input.request);
    if (request == nullptr) continue;
    Answer(state_, i, *request,
           DenyPlain(input.session, input.request, kCancelled, false));
  }
}

void RequestServer::OnChunkCreated(const ChunkCreated& input) {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    Device& device = state_.devices[i];
    const Chunk* chunk = device.ledger.Find(input.chunk);
    if (chunk == nullptr) continue;
    Request* request = device.queue.Find(chunk->request);
    device.stir = true;
    if (input.status.ok()) {
      device.ledger.Created(input.chunk);
      device.create_error.clear();
      if (request != nullptr && --request->creating == 0) Grant(i, *request);
      return;
    }
    device.create_from = state_.now + kCreateAgain;
    device.create_error = std::string(input.status.message());
    if (request != nullptr) RollBack(state_, i, *request);
    device.ledger.CreateFailed(input.chunk);
    return;
  }
  METS_CHECK(false) << "no chunk " << input.chunk << " to be created";
}

void RequestServer::DenyOverdueRequests() {
  for (size_t i = 0; i < state_.devices.size(); ++i) {
    RequestQueue& queue = state_.devices[i].queue;
    if (queue.NextDeadline() > state_.now) continue;
    for (Request* request : queue.Waiting(OpOfSession())) {
      if (request->deadline > state_.now) continue;
      const Session& session = *state_.sessions.Find(request->session);
      if (!request->no_wait) {
        NoteFailure(*session.job, i,
                    FailureOf(state_, i, *request, *session.job));
      }
      Answer(state_, i, *request, DenyOverdue(state_, i, *request, session));
    }
  }
}

void RequestServer::Grant(size_t index, Request& request) {
  Device& device = state_.devices[index];
  Session& session = *state_.sessions.Find(request.session);
  Holding& holding = session.holdings[index];
  core::Grant grant;
  grant.session = request.session;
  grant.request = request.id;
  grant.range_chunks = request.range_chunks;
  grant.overdraft = request.has_token;
  for (ChunkId id : request.chunks) {
    const ChunkRef chunk{id, device.ledger.Find(id)->size};
    grant.chunks.push_back(chunk);
    if (device.ledger.Grant(id, request.session)) {
      grant.new_to_session.push_back(chunk);
    }
    holding.chunk_bytes += chunk.size;
    session.job->devices[index].pending -= chunk.size;
  }
  EndLoan(holding, request.chunks);
  if (request.waited && state_.now - request.arrived >= kShortWait) {
    NoteRequest(state_, EventKind::kGranted, *session.job, index, request);
  }
  Close(state_, index, request);
  state_.Send(std::move(grant));
}

}  // namespace mets::core
