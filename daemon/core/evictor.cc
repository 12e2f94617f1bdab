#include "daemon/core/evictor.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mets::core {
namespace {

constexpr size_t kFewestSpares = 4;
constexpr size_t kMostCandidates = 1024;  // In one order.
// How soon victims are searched again where none were found.
constexpr absl::Duration kSearchAgain = absl::Milliseconds(2);

}  // namespace

Bytes Evictor::Evict(const ReclaimGoal& goal) {
  Device& device = state_.devices[goal.device];
  if (goal.only == nullptr && state_.now < device.search_from) return Bytes();
  Round round;
  std::vector<Candidate> candidates = Gather(goal, &round);
  Rank(&candidates, goal);
  for (const Candidate& candidate : candidates) {
    if (Enough(goal, round)) break;
    Choose(candidate, goal, &round);
  }
  for (auto& [id, share] : round.shares) Issue(goal.device, share);
  GrowSwap(round);
  NoteObstacle(goal, round);
  return std::min(round.chosen, goal.bytes);
}

std::vector<Evictor::Candidate> Evictor::Gather(const ReclaimGoal& goal,
                                                Round* round) {
  std::vector<Candidate> candidates;
  for (auto& [id, session] : state_.sessions.all()) {
    if (goal.only != nullptr && session.job != goal.only) continue;
    const Holding& holding = session.holdings[goal.device];
    if (!session.serves()) {
      round->silent |= !holding.bytes().is_zero();
      continue;
    }
    if (state_.orders.FindKind(id, OrderKind::kEvict, goal.device)) continue;
    const auto takable = round->takable.try_emplace(
        session.job, Takable(state_, *session.job, goal));
    if (takable.first->second.is_zero()) {
      round->is_protected |= !session.job->guarantee.is_zero();
      continue;
    }
    for (const auto& [buffer_id, buffer] : holding.buffers.all()) {
      if (!buffer.CanLeave(state_.now)) continue;
      candidates.push_back({id, &buffer, session.job->priority,
                            state_.policy->Score(state_.now, Facts(buffer))});
    }
  }
  return candidates;
}

VictimFacts Evictor::Facts(const Buffer& buffer) const {
  VictimFacts facts;
  facts.size = buffer.size;
  facts.last_use = buffer.last_use;
  facts.clean = buffer.slot.ok();
  return facts;
}

void Evictor::Rank(std::vector<Candidate>* candidates,
                   const ReclaimGoal& goal) const {
  // The table has no order; ties are to be the same in every run.
  const auto key = [&](const Candidate& c) {
    return std::make_tuple(c.priority > goal.requester->priority, -c.score,
                           !c.buffer->slot.ok(), Bytes() - c.buffer->size,
                           c.session, c.buffer->id);
  };
  std::sort(
      candidates->begin(), candidates->end(),
      [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
}

bool Evictor::Enough(const ReclaimGoal& goal, const Round& round) const {
  return round.chosen >= goal.bytes && round.spare * 2 >= goal.bytes &&
         round.spares >= kFewestSpares;
}

void Evictor::Choose(const Candidate& candidate, const ReclaimGoal& goal,
                     Round* round) {
  const Bytes size = candidate.buffer->size;
  const bool spare = round->chosen >= goal.bytes;
  if (spare && round->shares.count(candidate.session) == 0) return;
  Session* session = state_.sessions.Find(candidate.session);
  Holding& holding = session->holdings[goal.device];
  Bytes& takable = round->takable[session->job];
  if (takable < size) {
    round->is_protected |= !session->job->guarantee.is_zero();
    return;
  }
  auto it = round->shares.find(candidate.session);
  const Bytes named =
      (it == round->shares.end() ? Bytes() : it->second.named) + size;
  // A client cannot give more than it has, whatever it says.
  if (named > holding.bytes()) return;
  if (it != round->shares.end() &&
      it->second.buffers.size() >= kMostCandidates) {
    return;
  }
  Buffer* buffer = holding.buffers.Find(candidate.buffer->id);
  const bool reused = buffer->slot.ok();
  if (!swap_.SlotFor(*session, goal.device, *buffer, !spare)) {
    if (!spare) Postpone(*session, size, round);
    return;
  }
  Share& share = round->shares[candidate.session];
  share.session = session;
  share.named = named;
  share.buffers.push_back(buffer);
  share.reused.push_back(reused);
  // Spares count as well: the client may have to take them instead.
  takable -= size;
  if (spare) {
    round->spare += size;
    ++round->spares;
  } else {
    share.target += std::min(size, goal.bytes - round->chosen);
    round->chosen += size;
  }
}

void Evictor::Postpone(const Session& session, Bytes size, Round* round) const {
  for (SwapWish& wish : round->postponed) {
    if (wish.domain != session.domain) continue;
    wish.all += size;
    return;
  }
  round->postponed.push_back({session.domain, size, size});
}

void Evictor::GrowSwap(const Round& round) {
  // Also when others could leave instead: the next time, the best shall. Only
  // one domain takes from others, or they would take from one another.
  bool may_take = true;
  for (const SwapWish& wish : round.postponed) {
    if (swap_.Grow(wish, may_take)) may_take = false;
  }
  for (const auto& [id, share] : round.shares) {
    swap_.KeepHeadroom(share.session->domain);
  }
}

void Evictor::Issue(size_t device, Share& share) {
  struct Order order;
  order.session = share.session->id;
  order.kind = OrderKind::kEvict;
  order.device = device;
  order.due = state_.now + state_.config.order_timeout;
  order.target = share.target;
  EvictOrder action;
  action.session = share.session->id;
  action.device = state_.devices[device].config.name;
  action.target = share.target;
  for (size_t i = 0; i < share.buffers.size(); ++i) {
    Buffer& buffer = *share.buffers[i];
    const Slot& slot = state_.swap.Find(buffer.slot)->slot;
    order.candidates.push_back(
        {buffer.id, buffer.slot, buffer.size, share.reused[i]});
    action.candidates.push_back({buffer.id, slot});
    for (const SlotPiece& piece : slot.pieces) {
      bool& certain = share.session->extents[piece.extent];
      if (certain) continue;
      certain = true;
      action.new_to_session.push_back(
          {piece.extent, state_.swap.FindExtent(piece.extent)->space.size()});
    }
  }
  action.order = state_.orders.Add(std::move(order)).id;
  for (size_t i = 0; i < share.buffers.size(); ++i) {
    share.buffers[i]->order = action.order;
    share.buffers[i]->left = false;
    share.buffers[i]->clean = share.reused[i];
  }
  state_.Send(std::move(action));
}

void Evictor::NoteObstacle(const ReclaimGoal& goal, const Round& round) {
  Device& device = state_.devices[goal.device];
  if (round.chosen >= goal.bytes) {
    device.obstacle = Obstacle::kNone;
    return;
  }
  if (goal.only == nullptr && round.shares.empty()) {
    device.search_from = state_.now + kSearchAgain;
  }
  if (!round.postponed.empty()) {
    device.obstacle = Obstacle::kSwapFull;
  } else if (round.is_protected) {
    device.obstacle = Obstacle::kProtected;
  } else {
    device.obstacle = round.silent ? Obstacle::kSilent : Obstacle::kPinned;
  }
}

}  // namespace mets::core
