// Invariants: a party that is running or closed has been told so since mode_
// left kFree; its members' `order` is what they were told last.
#include "daemon/core/scheduling/turn_scheduler.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::core {
namespace {

// How long a gate that is open for a turn may see no op: a step's end that
// nobody noticed, or a program that does something else.
constexpr absl::Duration kIdleTurn = absl::Milliseconds(50);
// The same within a quantum, at most: where a hand-over moves bytes, somebody
// else gets the device when it has been idle for as long as handing it over
// and back takes, which costs at most twice what the best guess would.
constexpr absl::Duration kIdleQuantum = absl::Seconds(1);
constexpr absl::Duration kShortestQuantum = absl::Milliseconds(200);
// Beyond its length, until a step's end is not waited for any more.
constexpr absl::Duration kStepGrace = absl::Milliseconds(100);
// A client may say that it used less of its turn than it had, down to this.
constexpr double kLeastCharge = 0.25;
constexpr absl::Duration kBackAtOnce = absl::Milliseconds(10);
constexpr absl::Duration kLongestGap = absl::Seconds(10);

}  // namespace

TurnMember* TurnScheduler::FindMember(SessionId session, TurnParty** found) {
  for (auto& [job, party] : parties_) {
    auto it = party.members.find(session);
    if (it == party.members.end()) continue;
    *found = &party;
    return &it->second;
  }
  return nullptr;
}

bool TurnScheduler::Due(absl::Time time) {
  if (time <= now_) return true;
  next_ = std::min(next_, time);
  return false;
}

void TurnScheduler::Send(TurnMember& member, bool open, GateMoment moment,
                         absl::Duration idle) {
  member.order = ids_.Next();
  member.ended = member.wants = false;
  GateOrder order;
  order.session = member.facts.session;
  order.order = member.order;
  order.device = options_.device;
  order.open = open;
  order.moment = moment;
  order.idle = idle;
  orders_.push_back(std::move(order));
}

void TurnScheduler::SendOpen(const TurnParty& party, TurnMember& member) {
  Send(member, true, party.quantum ? GateMoment::kNow : GateMoment::kStepEnd,
       party.quantum ? IdleQuantum(party) : kIdleTurn);
}

absl::Duration TurnScheduler::IdleQuantum(const TurnParty& party) const {
  return fixed() ? kIdleQuantum
                 : std::clamp(2 * ExchangeCost(party), kIdleTurn, kIdleQuantum);
}

void TurnScheduler::Join(const TurnFacts& facts) {
  const bool first = parties_.count(facts.job) == 0;
  TurnParty& party = parties_[facts.job];
  party.priority = facts.priority;
  party.weight = std::max(1, facts.weight);
  party.limit = facts.limit;
  party.last_seen = std::max(party.last_seen, facts.last_active);
  const bool joins = party.members.count(facts.session) == 0;
  TurnMember& member = party.members[facts.session];
  member.facts = facts;
  if (first) party.pass = virtual_time_;
  const bool was_paused = party.paused;
  if (facts.paused != was_paused) SetPaused(facts.job, party, facts.paused);
  if (!joins || (facts.paused && !was_paused)) return;
  if (mode_ == SharingMode::kFree && !facts.paused) return;
  if (first) {
    party.opened = now_;
    Close(party, GateMoment::kNow);
  } else if (party.phase == Phase::kOpen) {
    SendOpen(party, member);
  } else {
    Send(member, false, GateMoment::kNow, absl::ZeroDuration());
  }
}

void TurnScheduler::SetPaused(const JobKey& job, TurnParty& party,
                              bool paused) {
  party.paused = paused;
  if (paused) {
    if (party.stopped()) return;
    if (!party.running()) {
      party.opened = now_;
      party.quantum = false;
    }
    Close(party, GateMoment::kNow);
    return;
  }
  party.wanted = now_;
  if (mode_ != SharingMode::kFree) return;
  if (party.wants) given_.push_back({job, absl::ZeroDuration(), false});
  party.phase = Phase::kFree;
  party.wants = false;
  for (auto& [id, member] : party.members) {
    Send(member, true, GateMoment::kNow, absl::ZeroDuration());
  }
}

void TurnScheduler::Update(absl::Time now, const std::vector<TurnFacts>& all) {
  now_ = now;
  std::set<SessionId> present;
  for (const TurnFacts& facts : all) {
    present.insert(facts.session);
    Join(facts);
  }
  for (auto job = parties_.begin(); job != parties_.end();) {
    auto& members = job->second.members;
    for (auto it = members.begin(); it != members.end();) {
      it = present.count(it->first) > 0 ? std::next(it) : members.erase(it);
    }
    if (!members.empty()) EndIfAllHave(job->second);
    job = members.empty() ? parties_.erase(job) : std::next(job);
  }
  LookForThrash();
}

void TurnScheduler::Forget(SessionId session) {
  TurnParty* party = nullptr;
  if (FindMember(session, &party) == nullptr) return;
  party->members.erase(session);
  if (!party->members.empty()) EndIfAllHave(*party);
  for (auto it = parties_.begin(); it != parties_.end(); ++it) {
    if (&it->second != party || !party->members.empty()) continue;
    parties_.erase(it);
    return;
  }
}

void TurnScheduler::OnNeed(const StepNeed& need) {
  TurnParty* party = nullptr;
  TurnMember* member = FindMember(need.session, &party);
  if (member == nullptr) return;
  // A job larger than the device swaps within its step.
  const Bytes peak = std::min(need.peak, pool_);
  if (peak <= Bytes() || need.step <= absl::ZeroDuration()) return;
  member->known = true;
  member->peak = peak;
  member->persistent = std::clamp(need.persistent, Bytes(), peak);
  member->step = std::min(need.step, absl::Hours(1));
}

void TurnScheduler::OnWanted(absl::Time now, const TurnWanted& wanted) {
  now_ = now;
  TurnParty* party = nullptr;
  TurnMember* member = FindMember(wanted.session, &party);
  if (member == nullptr || member->order != wanted.order ||
      party->phase == Phase::kFree) {
    return;
  }
  party->last_seen = now;
  if (party->phase == Phase::kOpen && party->quantum && member->ended) {
    // It was idle; others of its job were not.
    SendOpen(*party, *member);
    return;
  }
  member->wants = true;
  if (party->wants) return;
  party->wants = true;
  party->wanted = now;
  if (party->phase != Phase::kClosed) return;
  const absl::Duration gap = std::min(now - party->ended, kLongestGap);
  party->gap = party->gap == absl::InfiniteDuration()
                   ? gap
                   : 0.7 * party->gap + 0.3 * gap;
  if (gap > kBackAtOnce) party->pass = std::max(party->pass, virtual_time_);
}

void TurnScheduler::OnEnded(absl::Time now, const TurnEnded& ended) {
  now_ = now;
  TurnParty* party = nullptr;
  TurnMember* member = FindMember(ended.session, &party);
  if (member == nullptr || member->order != ended.order || member->ended ||
      !party->running()) {
    return;
  }
  member->ended = true;
  member->computed = ended.computed;
  member->stalled = ended.stalled;
  EndIfAllHave(*party);
}

void TurnScheduler::EndIfAllHave(TurnParty& party) {
  const bool all = std::all_of(party.members.begin(), party.members.end(),
                               [](const auto& m) { return m.second.ended; });
  if (all && party.running()) End(party);
}

void TurnScheduler::End(TurnParty& party) {
  absl::Duration computed, stalled;
  bool told = true;
  for (auto& [id, member] : party.members) {
    told &= member.ended;
    computed = std::max(
        computed, member.ended ? member.computed : absl::InfiniteDuration());
    stalled = std::max(stalled, member.stalled);
    member.computed = member.stalled = absl::ZeroDuration();
  }
  const absl::Duration had = now_ - party.opened;
  computed = std::clamp(computed, had * kLeastCharge, had);
  party.pass += absl::ToDoubleSeconds(computed) / party.weight;
  if (party.quantum && told) LearnCost(party, std::min(stalled, had));
  NoteOver(party);
  party.phase = Phase::kClosed;
  party.ended = now_;
  party.wanted = now_;  // So far it has waited for none but itself.
  party.last_seen = std::max(party.last_seen, now_ - (had - computed));
}

void TurnScheduler::NoteOver(TurnParty& party) {
  if (!std::exchange(party.given, false)) return;
  over_.push_back({party.members.begin()->second.facts.job, party.waited,
                   now_ - party.opened});
}

absl::Duration TurnScheduler::ExchangeCost(const TurnParty& party) {
  return party.cost == absl::InfiniteDuration() ? party.exchange : party.cost;
}

// It rises at once: too short a quantum costs all jobs their time.
void TurnScheduler::LearnCost(TurnParty& party, absl::Duration stalled) {
  const bool first = party.cost == absl::InfiniteDuration();
  const absl::Duration before = first ? stalled : party.cost;
  party.cost = std::max(stalled, 0.7 * before + 0.3 * stalled);
}

void TurnScheduler::Close(TurnParty& party, GateMoment moment) {
  party.phase = Phase::kClosing;
  party.told = now_;
  party.moment = moment;
  for (auto& [id, member] : party.members) {
    if (member.ended && member.order.ok()) continue;
    Send(member, false, moment, absl::ZeroDuration());
  }
}

absl::Duration TurnScheduler::EndsWithin(const TurnParty& party) const {
  return party.gated() ? std::max(options_.order_timeout, options_.max_wait)
                       : options_.order_timeout;
}

void TurnScheduler::Open(const JobKey& job, TurnParty& party) {
  party.given = true;
  party.waited = party.wants ? now_ - party.wanted : absl::ZeroDuration();
  given_.push_back({job, party.waited, true});
  party.phase = Phase::kOpen;
  party.quantum = mode_ == SharingMode::kQuanta || !party.known();
  party.opened = now_;
  party.wants = false;
  for (auto& [other_job, other] : parties_) {
    if (other.running()) other.booked = Room(other);
  }
  party.exchange = MovingTime(std::min(party.swapped(), party.peak()));
  party.wish = std::max({kShortestQuantum, party.step(),
                         ExchangeCost(party) / options_.moving_share});
  if (fixed()) party.wish = options_.fixed_quantum;
  ++(party.quantum ? quanta_ : turns_);
  for (auto& [id, member] : party.members) SendOpen(party, member);
}

void TurnScheduler::CloseWhatIsOver() {
  const auto waiting = Waiting();
  const TurnParty* head = waiting.empty() ? nullptr : &waiting[0]->second;
  const bool blocked = head != nullptr && !Fits(*head);
  int highest = std::numeric_limits<int>::min();
  for (const auto* entry : waiting) {
    highest = std::max(highest, entry->second.priority);
  }
  for (auto& [job, party] : parties_) {
    const absl::Time end = party.opened + TurnLength(party);
    const absl::Duration step = party.step();
    if (party.phase == Phase::kOpen && blocked) {
      if (highest > party.priority) {
        if (Due(YieldsAt(party))) Close(party, GateMoment::kNow);
      } else if (party.quantum && !fixed() && step > absl::ZeroDuration()) {
        // Not before its step has begun, or it would have nothing of it.
        const absl::Time begun = party.opened + step / 2;
        const absl::Time last = party.opened + Cap(party) - step;
        if (Due(std::max(begun, std::min(end, last)))) {
          Close(party, GateMoment::kStepEnd);
        }
      } else if (Due(end)) {
        Close(party, GateMoment::kNow);
      }
    } else if (party.phase == Phase::kClosing) {
      if (party.moment == GateMoment::kStepEnd) {
        if (Due(std::max(end, party.told + step) + kStepGrace)) {
          Close(party, GateMoment::kNow);
        }
      } else if (Due(party.told + EndsWithin(party))) {
        End(party);
      }
    }
  }
}

// What was small when it was opened has grown, or its need has become known.
void TurnScheduler::CloseWhatNoLongerFits() {
  for (;;) {
    Bytes sum = mode_ == SharingMode::kTurns ? Persistent() : Bytes();
    int open = 0;
    TurnParty* last = nullptr;
    for (auto& [job, party] : parties_) {
      if (party.phase != Phase::kOpen) continue;
      sum += Room(party);
      ++open;
      if (last == nullptr || Before(*last, party)) last = &party;
    }
    if (open < 2 || sum <= pool_) return;
    const bool steps = last->step() > absl::ZeroDuration();
    Close(*last, steps ? GateMoment::kStepEnd : GateMoment::kNow);
  }
}

void TurnScheduler::OpenWhatFits() {
  for (;;) {
    const auto waiting = Waiting();
    if (waiting.empty()) return;
    auto& [job, party] = *waiting[0];
    if (!Fits(party) || KeptFor(party)) return;
    Open(job, party);
  }
}

std::vector<GateOrder> TurnScheduler::Advance(absl::Time now) {
  now_ = now;
  next_ = absl::InfiniteFuture();
  ChooseMode();
  if (mode_ != SharingMode::kFree) {
    CloseWhatNoLongerFits();
    CloseWhatIsOver();
    OpenWhatFits();
    // Whoever still waits may be waiting for what has just been opened.
    CloseWhatIsOver();
    RaiseVirtualTime();
  }
  return std::exchange(orders_, {});
}

absl::Time TurnScheduler::NotBefore(SessionId session) const {
  for (const auto& [job, party] : parties_) {
    if (party.members.count(session) == 0) continue;
    if (party.rests()) return now_ + options_.max_wait;
    if (mode_ == SharingMode::kFree) return absl::InfinitePast();
    if (party.phase != Phase::kClosed) return absl::InfinitePast();
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [other_job, other] : parties_) {
      if (!other.running()) continue;
      const absl::Duration length =
          other.quantum ? TurnLength(other) : other.step();
      next = std::min(next, std::max(now_, other.opened + length));
    }
    return next == absl::InfiniteFuture() ? now_ : next;
  }
  return absl::InfinitePast();
}

bool TurnScheduler::WaitsAtGate(SessionId session) const {
  for (const auto& [job, party] : parties_) {
    const auto it = party.members.find(session);
    if (it == party.members.end()) continue;
    const bool closes =
        party.phase == Phase::kClosing || party.phase == Phase::kClosed;
    return closes && it->second.wants;
  }
  return false;
}

const TurnParty* TurnScheduler::Find(const JobKey& job) const {
  auto it = parties_.find(job);
  return it == parties_.end() ? nullptr : &it->second;
}

}  // namespace mets::core
