// TurnScheduler: what it is told, and what it says.
//
// Invariants: a party that is running or closed has been told so, on all its
// devices where gates follow orders, since the first of these did; its members'
// `order` is what they were told last.
#include "daemon/core/scheduling/turn_scheduler.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mets::core {
namespace {

constexpr absl::Duration kBackAtOnce = absl::Milliseconds(10);
constexpr absl::Duration kLongestGap = absl::Seconds(10);

}  // namespace

TurnScheduler::TurnScheduler(TurnOptions options)
    : options_(std::move(options)),
      devices_(options_.devices.begin(), options_.devices.end()) {}

TurnMember* TurnScheduler::FindMember(SessionId session,
                                      const std::string& device,
                                      TurnParty** found, size_t* index) {
  for (auto& [job, party] : parties_) {
    for (auto& [i, part] : party.parts) {
      const auto it = part.members.find(session);
      if (it == part.members.end() ||
          (!device.empty() && options_.devices[i].name != device)) {
        continue;
      }
      *found = &party;
      *index = i;
      return &it->second;
    }
  }
  return nullptr;
}

bool TurnScheduler::Due(absl::Time time) {
  if (time <= now_) return true;
  next_ = std::min(next_, time);
  return false;
}

bool TurnScheduler::OrderedAnywhere(const TurnParty& party) const {
  return std::any_of(party.parts.begin(), party.parts.end(),
                     [&](const auto& p) { return Ordered(party, p.first); });
}

void TurnScheduler::Join(const TurnFacts& facts) {
  TurnParty& party = parties_[facts.job];
  party.priority = facts.priority;
  party.weight = std::max(1, facts.weight);
  party.last_seen = std::max(party.last_seen, facts.last_active);
  if (party.parts.count(facts.device) == 0) {
    party.parts[facts.device].pass = devices_[facts.device].virtual_time;
  }
  TurnPart& part = party.parts[facts.device];
  part.limit = facts.limit;
  const bool joins = part.members.count(facts.session) == 0;
  TurnMember& member = part.members[facts.session];
  member.facts = facts;
  member.NoteLive(now_);
  if (facts.starves && !facts.gated) Starve(party, member);
  const bool was_paused = party.paused;
  if (facts.paused != was_paused) SetPaused(facts.job, party, facts.paused);
  if (!joins || (facts.paused && !was_paused)) return;
  if (!Ordered(party, facts.device)) return;
  if (party.phase == Phase::kFree) {
    party.opened = now_;
    Close(party, GateMoment::kNow);
  } else if (party.phase != Phase::kOpen || !part.used() ||
             !OpenLate(party, facts.device, member)) {
    Send(member, false, GateMoment::kNow, absl::ZeroDuration());
  }
}

void TurnScheduler::Starve(TurnParty& party, TurnMember& member) {
  if (party.phase != Phase::kClosing && party.phase != Phase::kClosed) return;
  if (!std::exchange(member.wants, true)) party.last_word = now_;
  if (!std::exchange(party.wants, true)) party.wanted = now_;
  if (party.phase == Phase::kClosed) return;
  member.ended = true;
  EndIfAllHave(party);
}

void TurnScheduler::SetPaused(const JobKey& job, TurnParty& party,
                              bool paused) {
  const auto free = [this](const auto& part) {
    return devices_[part.first].mode == SharingMode::kFree;
  };
  party.paused = paused;
  if (paused) {
    if (party.stopped() &&
        std::none_of(party.parts.begin(), party.parts.end(), free)) {
      return;
    }
    if (!party.running()) {
      party.opened = now_;
      party.quantum = false;
    }
    Close(party, GateMoment::kNow);
    return;
  }
  party.wanted = now_;
  for (const auto& part : party.parts) {
    if (free(part)) SetFree(job, party, part.first);
  }
  Settle(party);
}

void TurnScheduler::Update(absl::Time now, const std::vector<TurnFacts>& all) {
  now_ = now;
  std::set<std::pair<size_t, SessionId>> present;
  for (const TurnFacts& facts : all) {
    present.insert({facts.device, facts.session});
    Join(facts);
  }
  Leave([&](size_t device, SessionId session) {
    return present.count({device, session}) == 0;
  });
  LookForThrash();
}

void TurnScheduler::Forget(SessionId session) {
  Leave([&](size_t, SessionId member) { return member == session; });
}

template <typename Leaves>
void TurnScheduler::Leave(Leaves leaves) {
  for (auto job = parties_.begin(); job != parties_.end();) {
    auto& parts = job->second.parts;
    for (auto part = parts.begin(); part != parts.end();) {
      auto& members = part->second.members;
      for (auto it = members.begin(); it != members.end();) {
        it = leaves(part->first, it->first) ? members.erase(it) : std::next(it);
      }
      part = members.empty() ? parts.erase(part) : std::next(part);
    }
    if (!parts.empty()) Settle(job->second);
    job = parts.empty() ? parties_.erase(job) : std::next(job);
  }
}

void TurnScheduler::OnNeed(const StepNeed& need) {
  TurnParty* party = nullptr;
  size_t device = 0;
  TurnMember* member = FindMember(need.session, need.device, &party, &device);
  if (member == nullptr) return;
  // A job larger than the device swaps within its step.
  const Bytes peak = std::min(need.peak, devices_[device].pool);
  if (peak <= Bytes() || need.step <= absl::ZeroDuration()) return;
  member->known = true;
  member->peak = peak;
  member->persistent = std::clamp(need.persistent, Bytes(), peak);
  member->step = std::min(need.step, absl::Hours(1));
}

void TurnScheduler::OnWanted(absl::Time now, const TurnWanted& wanted) {
  now_ = now;
  TurnParty* party = nullptr;
  size_t device = 0;
  TurnMember* member =
      FindMember(wanted.session, wanted.device, &party, &device);
  if (member == nullptr || member->order != wanted.order ||
      !Ordered(*party, device)) {
    return;
  }
  party->last_seen = now;
  if (!std::exchange(member->wants, true)) party->last_word = now;
  if (party->phase == Phase::kOpen && member->ended &&
      (party->quantum || !member->step_end)) {
    // It was idle; others of its job were not.
    if (OpenLate(*party, device, *member)) return;
    Close(*party, GateMoment::kNow);
  }
  if (party->wants) return;
  party->wants = true;
  party->wanted = now;
  if (party->phase != Phase::kClosed) return;
  const absl::Duration gap = std::min(now - party->ended, kLongestGap);
  party->gap = party->gap == absl::InfiniteDuration()
                   ? gap
                   : 0.7 * party->gap + 0.3 * gap;
  if (gap <= kBackAtOnce) return;
  for (auto& [i, part] : party->parts) {
    part.pass = std::max(part.pass, devices_[i].virtual_time);
  }
}

void TurnScheduler::OnEnded(absl::Time now, const TurnEnded& ended) {
  now_ = now;
  TurnParty* party = nullptr;
  size_t device = 0;
  TurnMember* member = FindMember(ended.session, ended.device, &party, &device);
  if (member == nullptr || member->order != ended.order || member->ended ||
      !Ordered(*party, device)) {
    return;
  }
  member->ended = true;
  member->step_end = ended.step_end;
  member->computed = ended.computed;
  member->stalled = ended.stalled;
  party->last_word = now;
  EndIfAllHave(*party);
}

std::vector<GateOrder> TurnScheduler::Advance(absl::Time now) {
  now_ = now;
  next_ = absl::InfiniteFuture();
  bool turns = false;
  for (size_t i = 0; i < devices_.size(); ++i) {
    ChooseMode(i);
    turns |= devices_[i].mode != SharingMode::kFree;
  }
  if (turns) {
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
    bool member = false, open = !party.rests() && party.phase != Phase::kClosed;
    for (const auto& [device, part] : party.parts) {
      if (part.members.count(session) == 0) continue;
      member = true;
      open |= !Ordered(party, device) && part.used();
    }
    if (!member) continue;
    if (open) return absl::InfinitePast();
    if (party.rests()) return now_ + options_.max_wait;
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [other_job, other] : parties_) {
      if (!other.running() || !Meet(party, other)) continue;
      next = std::min(next, std::max(now_, EndsAt(other)));
    }
    return next == absl::InfiniteFuture() ? now_ : next;
  }
  return absl::InfinitePast();
}

bool TurnScheduler::WaitsAtGate(SessionId session, size_t device) const {
  for (const auto& [job, party] : parties_) {
    const auto part = party.parts.find(device);
    if (part == party.parts.end()) continue;
    const auto it = part->second.members.find(session);
    if (it == part->second.members.end()) continue;
    const bool closes =
        party.phase == Phase::kClosing || party.phase == Phase::kClosed;
    return closes && it->second.wants;
  }
  return false;
}

const TurnParty* TurnScheduler::Find(const JobKey& job, size_t device) const {
  const auto it = parties_.find(job);
  const bool found = it != parties_.end() &&
                     it->second.parts.count(device) > 0 &&
                     Ordered(it->second, device);
  return found ? &it->second : nullptr;
}

}  // namespace mets::core
