#include "daemon/core/victims/evictor.h"

#include <algorithm>
#include <utility>

#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/victims/fetch_victims.h"
#include "daemon/core/victims/trim_order.h"

namespace mets::core {
namespace {

constexpr size_t kFewestSpares = 4;
// A hand-over in so many orders is as fast as in one.
constexpr int64_t kFewOrders = 8;
constexpr size_t kMostCandidates = 1024;  // In one order.
// How soon victims are searched again where none were found.
constexpr absl::Duration kSearchAgain = absl::Milliseconds(1);

EvictCause CauseOf(const ReclaimGoal& goal) {
  if (goal.commanded) return EvictCause::kCommand;
  if (goal.only == nullptr) return EvictCause::kRequest;
  return goal.only == goal.requester ? EvictCause::kLimit : EvictCause::kTurn;
}

Bytes SpareBytes(const ReclaimGoal& goal) {
  return Bytes((goal.bytes.count() + 1) / 2);
}

}  // namespace

Bytes Evictor::Evict(const ReclaimGoal& goal) {
  Device& device = state_.devices[goal.device];
  if (goal.only == nullptr && state_.now < device.search_from) {
    device.retry_at = std::min(device.retry_at, device.search_from);
    return Bytes();
  }
  const int priority = goal.requester->priority;
  Round round;
  VictimIndex& victims = device.victims;
  victims.Wake(state_.now);
  victims.Freeze();
  VictimWalk walk =
      goal.only == nullptr
          ? VictimWalk(victims, state_.now, priority)
          : VictimWalk(victims, state_.now, priority, goal.only->sessions);
  Gather(goal, &walk, &round);
  victims.DropHeads(walk.stale());
  victims.Thaw(state_.now);
  if (round.chosen < goal.bytes) NoteSessions(goal, &round);
  std::sort(round.shares.begin(), round.shares.end(),
            [](const Share& a, const Share& b) {
              return a.session->id < b.session->id;
            });
  state_.actions.reserve(state_.actions.size() + round.shares.size());
  for (Share& share : round.shares) Issue(goal, share);
  GrowSwap(goal, round);
  NoteObstacle(goal, round);
  return std::min(round.chosen, goal.bytes);
}

void Evictor::Gather(const ReclaimGoal& goal, VictimWalk* walk, Round* round) {
  while (!Enough(goal, *round)) {
    if (round->chosen >= goal.bytes && !round->only_spares) {
      round->only_spares = true;
      std::vector<SessionId> sessions;
      sessions.reserve(round->shares.size());
      for (const Share& share : round->shares) {
        sessions.push_back(share.session->id);
      }
      walk->KeepOnly(std::move(sessions));
    }
    VictimWalk::Candidates candidates;
    if (round->only_spares) {
      walk->Take(SpareBytes(goal) - round->spare,
                 kFewestSpares - std::min(kFewestSpares, round->spares),
                 &candidates);
    } else {
      walk->Take(goal.bytes - round->chosen, 0, &candidates);
    }
    if (candidates.empty()) break;
    FetchVictims(state_, goal.device, candidates);
    for (const Candidate& candidate : candidates) {
      if (!walk->HasLeft(*candidate.group))
        Choose(candidate, goal, walk, round);
    }
  }
}

bool Evictor::Enough(const ReclaimGoal& goal, const Round& round) const {
  return round.chosen >= goal.bytes && round.spare >= SpareBytes(goal) &&
         round.spares >= kFewestSpares;
}

Evictor::Share* Evictor::FindShare(Round& round, SessionId session) {
  const auto share =
      std::find_if(round.shares.begin(), round.shares.end(),
                   [&](const Share& s) { return s.session->id == session; });
  return share == round.shares.end() ? nullptr : &*share;
}

Bytes& Evictor::TakableOf(const Job& job, const ReclaimGoal& goal,
                          Round* round) const {
  for (auto& [known, bytes] : round->takable) {
    if (known == &job) return bytes;
  }
  return round->takable.emplace_back(&job, Takable(state_, job, goal)).second;
}

Bytes Evictor::Allowance(const Session& session, const ReclaimGoal& goal,
                         Round* round) const {
  const Share* share = FindShare(*round, session.id);
  if (share != nullptr && share->buffers.size() >= kMostCandidates) {
    return Bytes();
  }
  // A client cannot give more than it has, whatever it says.
  const Bytes has = session.holdings[goal.device].own() -
                    (share != nullptr ? share->named : Bytes());
  return std::min(TakableOf(*session.job, goal, round), has);
}

void Evictor::Choose(const Candidate& candidate, const ReclaimGoal& goal,
                     VictimWalk* walk, Round* round) {
  const Session& session = candidate.session();
  const Bytes size = candidate.size;
  const Bytes allowance = Allowance(session, goal, round);
  if (allowance < size) {
    if (allowance.is_zero()) {
      walk->LeaveSession(session.id);
    } else if (allowance < candidate.kind().smallest()) {
      walk->LeaveGroup(*candidate.group);
    }
    return;
  }
  const bool reused = candidate.buffer->slot.ok();
  if (LacksSwap(candidate, goal, walk, round)) return;
  Take(candidate, goal, reused, round);
}

bool Evictor::LacksSwap(const Candidate& candidate, const ReclaimGoal& goal,
                        VictimWalk* walk, Round* round) {
  const Session& session = candidate.session();
  Buffer& buffer = *candidate.buffer;
  auto lack = round->lacks.find(session.domain);
  // Where one did not fit, no larger one does.
  const bool hopeless = !buffer.slot.ok() && lack != round->lacks.end() &&
                        lack->second <= buffer.size;
  if (!hopeless &&
      swap_.SlotFor(session, goal.device, buffer, !round->only_spares)) {
    return false;
  }
  if (!hopeless) {
    const Bytes room = swap_.Room(session.domain, !round->only_spares);
    round->lacks[session.domain] = std::min(buffer.size, room + Bytes(1));
  }
  bool wished = round->only_spares;
  if (!round->only_spares) {
    wished = Postpone(session, buffer.size, round) >= goal.bytes * 2;
  }
  if (wished && !candidate.kind().clean &&
      round->lacks[session.domain] <= candidate.kind().smallest()) {
    walk->LeaveGroup(*candidate.group);
  }
  return true;
}

void Evictor::Take(const Candidate& candidate, const ReclaimGoal& goal,
                   bool reused, Round* round) {
  const Bytes size = candidate.size;
  Share* found = FindShare(*round, candidate.session().id);
  if (found == nullptr) {
    found = &round->shares.emplace_back();
    found->session = state_.sessions.Find(candidate.session().id);
    found->owner = &candidate.owner();
  }
  Share& share = *found;
  share.named += size;
  share.buffers.push_back({candidate.buffer, reused});
  // Spares count as well: the client may have to take them instead.
  TakableOf(*share.session->job, goal, round) -= size;
  if (round->only_spares) {
    round->spare += size;
    ++round->spares;
  } else {
    const Bytes wanted = std::min(size, goal.bytes - round->chosen);
    share.target += wanted;
    if (!reused) share.copied += wanted;
    round->chosen += size;
  }
}

Bytes Evictor::Postpone(const Session& session, Bytes size,
                        Round* round) const {
  for (SwapWish& wish : round->postponed) {
    if (wish.domain != session.domain) continue;
    wish.all += size;
    return wish.all;
  }
  round->postponed.push_back({session.domain, size, size});
  return size;
}

// In a hand-over, what comes back leaves slots for what is still to go. Further
// ones would hardly be used, and take clients time to register.
bool Evictor::SlotsCome(const ReclaimGoal& goal, const SwapWish& wish) const {
  if (goal.only == nullptr || goal.only == goal.requester ||
      goal.requester->domain != wish.domain) {
    return false;
  }
  Bytes back;
  for (SessionId id : goal.requester->sessions) {
    back += state_.sessions.Find(id)->holdings[goal.device].buffers.swapped();
  }
  return back >= wish.all;
}

void Evictor::GrowSwap(const ReclaimGoal& goal, const Round& round) {
  // Also when others could leave instead: the next time, the best shall. Only
  // one domain takes from others, or they would take from one another.
  bool may_take = true;
  for (const SwapWish& wish : round.postponed) {
    if (round.chosen * kFewOrders >= goal.bytes && SlotsCome(goal, wish)) {
      continue;
    }
    if (swap_.Grow(wish, may_take)) may_take = false;
  }
  for (const Share& share : round.shares) {
    const DomainId domain = share.session->domain;
    if (SlotsCome(goal, {domain, share.named, share.named})) continue;
    swap_.KeepHeadroom(domain);
  }
}

void Evictor::Issue(const ReclaimGoal& goal, Share& share) {
  const size_t device = goal.device;
  struct Order order;
  order.session = share.session->id;
  order.kind = OrderKind::kEvict;
  order.device = device;
  order.due = state_.now + state_.config.order_timeout;
  order.target = share.target;
  order.issued = state_.now;
  order.cause = CauseOf(goal);
  if (state_.config.events) order.for_job = goal.requester->name;
  EvictOrder action;
  action.session = share.session->id;
  action.device = state_.devices[device].config.name;
  action.target = share.target;
  order.candidates.reserve(share.buffers.size());
  action.candidates.reserve(share.buffers.size());
  for (const auto& [buffer, reused] : share.buffers) {
    const Slot& slot = state_.swap.Find(buffer->slot)->slot;
    order.candidates.push_back(
        {buffer->id, buffer->slot, buffer->size, reused});
    order.next_use = std::min(order.next_use, buffer->next_use);
    action.candidates.push_back({buffer->id, slot});
    swap_.Introduce(slot, *share.session, &action.new_to_session);
  }
  swap_.IntroduceAll(*share.session, &action.new_to_session);
  action.order = state_.orders.Add(std::move(order)).id;
  state_.devices[device].handover.Begin(state_.now);
  for (const auto& [buffer, reused] : share.buffers) {
    buffer->order = action.order;
    buffer->left = false;
    buffer->clean = reused;
  }
  state_.Send(std::move(action));
  NoteOrderedMoves(state_, device, *share.session, *goal.requester,
                   share.copied);
  state_.devices[device].victims.LeaveOut(*share.owner);
}

// Only when not enough was found: it looks at every session.
void Evictor::NoteSessions(const ReclaimGoal& goal, Round* round) {
  for (auto& [id, session] : state_.sessions.all()) {
    const Job& job = *session.job;
    if (goal.only != nullptr && &job != goal.only) continue;
    if (!job.guarantee.is_zero() && *job.sessions.begin() == id) {
      round->kept += KeptByGuarantee(state_, job, goal);
    }
    Holding& holding = session.holdings[goal.device];
    if (!session.serves()) {
      round->silent += holding.bytes();
      continue;
    }
    if (state_.orders.FindKind(id, OrderKind::kEvict, goal.device)) continue;
    if (holding.buffers.size() == 0 && holding.own() > holding.cached) {
      round->untold = true;
      AskForLife(goal.device, session.id, &holding);
    }
  }
}

// While nothing is tight, buffers need not be reported at once, and a process
// that has stopped since cannot. An order, if for nothing, has to be answered.
void Evictor::AskForLife(size_t device, SessionId session, Holding* holding) {
  if (holding->asked_for_life ||
      state_.orders.FindKind(session, OrderKind::kTrim, device)) {
    return;
  }
  holding->asked_for_life = true;
  OrderTrim(state_, session, device, Bytes());
}

void Evictor::NoteObstacle(const ReclaimGoal& goal, const Round& round) {
  Device& device = state_.devices[goal.device];
  if (round.chosen >= goal.bytes) {
    device.obstacle = Obstacle::kNone;
    return;
  }
  // What rests may be enough.
  device.retry_at = std::min(device.retry_at, device.victims.NextWake());
  if (goal.only == nullptr && round.shares.empty()) {
    device.search_from = state_.now + kSearchAgain;
  }
  if (!round.postponed.empty()) {
    device.obstacle = Obstacle::kSwapFull;
  } else if (round.kept > round.silent) {
    device.obstacle = Obstacle::kProtected;
  } else {
    device.obstacle = !round.silent.is_zero() ? Obstacle::kSilent
                      : round.untold          ? Obstacle::kUntold
                                              : Obstacle::kPinned;
  }
}

}  // namespace mets::core
