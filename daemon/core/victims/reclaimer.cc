#include "daemon/core/victims/reclaimer.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/victims/trim_order.h"

namespace mets::core {

namespace {

// What orders under way do not bring.
Bytes LeftOf(const State& state, const Job& job, size_t device) {
  Bytes left = state.sessions.JobBytes(job, device);
  for (SessionId id : job.sessions) left -= state.orders.Coming(id, device);
  return std::max(Bytes(), left);
}

}  // namespace

Bytes KeptByGuarantee(const State& state, const Job& job,
                      const ReclaimGoal& goal) {
  if (&job == goal.requester || job.guarantee.is_zero() ||
      !state.JobActive(job)) {
    return Bytes();
  }
  return std::min(job.guarantee, LeftOf(state, job, goal.device));
}

Bytes Takable(const State& state, const Job& job, const ReclaimGoal& goal) {
  return LeftOf(state, job, goal.device) - KeptByGuarantee(state, job, goal);
}

Bytes Reclaimer::Reclaim(const ReclaimGoal& goal, bool evict) {
  const Bytes cached = Trim(goal);
  Bytes buffers;
  if (cached < goal.bytes && evict) {
    ReclaimGoal rest = goal;
    rest.bytes -= cached;
    buffers = evictor_.Evict(rest);
  }
  if (goal.tried != nullptr) {
    goal.tried->cached += cached;
    goal.tried->buffers += buffers;
    ++goal.tried->searches;
  }
  return cached + buffers;
}

Bytes Reclaimer::Trim(const ReclaimGoal& goal) {
  std::vector<Session*> sessions;
  for (SessionId id : state_.devices[goal.device].cachers) {
    Session& session = *state_.sessions.Find(id);
    const Holding& holding = session.holdings[goal.device];
    if (!session.serves() || id == goal.asker || holding.cached.is_zero() ||
        holding.trim_from > state_.now ||
        (goal.only != nullptr && session.job != goal.only) ||
        state_.orders.FindKind(id, OrderKind::kTrim, goal.device)) {
      continue;
    }
    sessions.push_back(&session);
  }
  const auto key = [&](const Session* s) {
    return std::make_tuple(s->job != goal.requester,
                           Bytes() - s->holdings[goal.device].cached, s->id);
  };
  std::sort(
      sessions.begin(), sessions.end(),
      [&](const Session* a, const Session* b) { return key(a) < key(b); });
  Bytes ordered;
  for (Session* session : sessions) {
    const Bytes target =
        std::min({session->holdings[goal.device].cached,
                  Takable(state_, *session->job, goal), goal.bytes - ordered});
    if (target <= Bytes()) continue;
    OrderTrim(state_, session->id, goal.device, target);
    ordered += target;
  }
  return ordered;
}

Bytes Reclaimer::EnforceLimit(Job& job, size_t device, Bytes extra, bool evict,
                              Tried* tried) {
  if (job.limit.is_zero()) return Bytes();
  Bytes over = state_.sessions.JobBytes(job, device) + extra - job.limit;
  for (SessionId id : job.sessions) over -= state_.orders.Coming(id, device);
  if (over <= Bytes()) return Bytes();
  return over - Reclaim({device, over, &job, &job, tried}, evict);
}

void Reclaimer::EnforceLoweredLimits() {
  for (auto it = state_.over_limit.begin(); it != state_.over_limit.end();) {
    Job* job = state_.sessions.FindJob(it->first, it->second);
    bool over = false;
    for (size_t i = 0; job != nullptr && i < state_.devices.size(); ++i) {
      if (job->limit.is_zero() ||
          state_.sessions.JobBytes(*job, i) <= job->limit) {
        continue;
      }
      over = true;
      const bool may_move = MovesFrom(state_, i, job->priority) <= state_.now;
      EnforceLimit(*job, i, Bytes(), may_move);
      Device& device = state_.devices[i];
      device.retry_at = std::min(device.retry_at, state_.now + kRetryAfter);
    }
    it = over ? std::next(it) : state_.over_limit.erase(it);
  }
}

}  // namespace mets::core
