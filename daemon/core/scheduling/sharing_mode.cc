// TurnScheduler: how a device is shared.
#include <algorithm>
#include <limits>

#include "daemon/core/scheduling/turn_scheduler.h"

namespace mets::core {
namespace {

// A job that did nothing for this long, or for three of its steps, is away.
constexpr absl::Duration kAwayAfter = absl::Seconds(5);
constexpr absl::Duration kAwayLatest = absl::Seconds(60);
// No mode lasts shorter, while several jobs compute.
constexpr absl::Duration kShortestMode = absl::Seconds(1);
// What ended by thrash is tried again after this: whether the jobs still thrash
// is not visible while they take turns.
constexpr absl::Duration kTryAgain = absl::Minutes(2);

// Beside jobs of other classes, or with several processes, a job is too new to
// be known for this long. Long, because a lower class that waits does not get
// to know its step; not for ever, because some programs have none.
constexpr absl::Duration kNewFor = absl::Minutes(5);

// To go back to it, needs must be smaller than what they were to leave a mode.
Bytes Part(Bytes pool, int percent) {
  return Bytes(pool.count() / 100 * percent);
}

absl::Duration AwayAfter(const TurnParty& party) {
  absl::Duration round = party.step();
  if (party.gap != absl::InfiniteDuration()) round += party.gap;
  return std::clamp(3 * round, kAwayAfter, kAwayLatest);
}

}  // namespace

bool TurnScheduler::Active(const TurnParty& party) const {
  if (party.rests()) return false;
  return party.running() || party.waiting() ||
         now_ < party.last_seen + AwayAfter(party);
}

int TurnScheduler::CountActive(size_t index) {
  Device& device = devices_[index];
  int active = 0;
  int lowest = std::numeric_limits<int>::max();
  int highest = std::numeric_limits<int>::min();
  for (auto& [job, party] : parties_) {
    const auto it = party.parts.find(index);
    if (it == party.parts.end()) continue;
    TurnPart& part = it->second;
    part.most_live = std::max(part.most_live, part.live());
    if (!part.used() || !Active(party)) continue;
    ++active;
    lowest = std::min(lowest, party.priority);
    highest = std::max(highest, party.priority);
    party.began = std::min(party.began, now_);
    if (device.mode == SharingMode::kFree) continue;
    Due(party.last_seen + AwayAfter(party));
    if (!part.known()) Due(party.began + kNewFor);
  }
  device.several_classes = lowest < highest;
  return active;
}

bool TurnScheduler::Presumed(size_t device, const TurnParty& party) const {
  const TurnPart& part = party.parts.at(device);
  if (part.known()) return false;
  if (part.gated()) return true;
  if (now_ >= party.began + kNewFor) return false;
  return party.processes() > 1 ||
         (devices_[device].several_classes && !HasFitted(device, party));
}

bool TurnScheduler::HasFitted(size_t index, const TurnParty& party) const {
  const Device& device = devices_[index];
  const TurnPart& part = party.parts.at(index);
  Bytes sum = part.Limited(part.most_live);
  bool highest = true;
  for (const auto& [job, other] : parties_) {
    const TurnPart* its = other.On(index);
    if (&other == &party || its == nullptr || !Active(other)) continue;
    if (other.priority > party.priority) {
      if (!its->known()) return false;
      highest = false;
    }
    sum += its->known() ? its->peak() : its->Limited(its->most_live);
  }
  const bool free = device.mode == SharingMode::kFree;
  return !highest && sum <= (free ? device.pool : Part(device.pool, 95));
}

bool TurnScheduler::SeveralGated(size_t device) const {
  return std::count_if(parties_.begin(), parties_.end(), [&](const auto& p) {
           const TurnPart* part = p.second.On(device);
           return part != nullptr && part->gated() && !p.second.rests();
         }) > 1;
}

void TurnScheduler::LookForThrash() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].mode != SharingMode::kFree) continue;
    std::map<const void*, ThrashMeter::Spent> spent;
    for (const auto& [job, party] : parties_) {
      const TurnPart* part = party.On(i);
      if (part != nullptr && Active(party)) {
        spent[&party] = {part->moved(), part->waited()};
      }
    }
    devices_[i].thrash.Look(now_, spent);
  }
}

Bytes TurnScheduler::WorkingSet(size_t index, const TurnParty& party) const {
  const Device& device = devices_[index];
  const TurnPart& part = party.parts.at(index);
  // Of a gated one nothing can leave while it needs more than it said.
  if (part.known()) {
    return part.gated() ? std::max(part.peak(), part.live()) : part.peak();
  }
  if (Presumed(index, party)) return part.Limited(device.pool);
  const bool live = device.mode != SharingMode::kFree ||
                    device.several_classes || party.processes() > 1 ||
                    device.thrash.thrashing();
  return live ? part.peak() : part.resident();
}

Bytes TurnScheduler::Persistent(size_t device) const {
  Bytes sum;
  for (const auto& [job, party] : parties_) {
    const TurnPart* part = party.On(device);
    if (part != nullptr && Active(party)) sum += part->persistent();
  }
  return sum;
}

SharingMode TurnScheduler::WantedMode(size_t index, int active) const {
  const Device& device = devices_[index];
  const bool gated_ones = SeveralGated(index);
  if (active < 2 && !gated_ones) return SharingMode::kFree;
  Bytes working_sets, largest;
  bool known = true, gated = false;
  for (const auto& [job, party] : parties_) {
    const TurnPart* part = party.On(index);
    if (part == nullptr || party.rests()) continue;
    if (!Active(party) && !(gated_ones && part->gated())) continue;
    working_sets += WorkingSet(index, party);
    largest = std::max(largest, part->ephemeral());
    known &= part->known();
    gated |= part->gated() && !part->known();
  }
  const bool free = device.mode == SharingMode::kFree;
  if (working_sets <= (free ? device.pool : Part(device.pool, 95))) {
    return SharingMode::kFree;
  }
  if (device.thrashed && !known && !gated &&
      now_ >= device.mode_since + kTryAgain) {
    return SharingMode::kFree;
  }
  // Where only one computes, its quantum ends when another comes.
  if (fixed() || active < 2) return SharingMode::kQuanta;
  const Bytes room = device.outgrown ? Part(device.pool, 97) : device.pool;
  return Persistent(index) + largest <= room ? SharingMode::kTurns
                                             : SharingMode::kQuanta;
}

void TurnScheduler::ChooseMode(size_t index) {
  const Device& device = devices_[index];
  const int active = CountActive(index);
  if (device.thrashed) Due(device.mode_since + kTryAgain);
  const SharingMode wanted = WantedMode(index, active);
  if (wanted == device.mode) return;
  if (active < 2 || Due(device.mode_since + kShortestMode)) {
    ChangeMode(index, wanted);
    // When the others come back, what is known of them counts at once.
    if (active < 2) devices_[index].mode_since = absl::InfinitePast();
  }
}

void TurnScheduler::ChangeMode(size_t index, SharingMode mode) {
  Device& device = devices_[index];
  const SharingMode before = device.mode;
  device.mode = mode;
  device.mode_since = now_;
  device.outgrown =
      before == SharingMode::kTurns && mode == SharingMode::kQuanta;
  device.thrashed = mode != SharingMode::kFree &&
                    (before == SharingMode::kFree ? device.thrash.thrashing()
                                                  : device.thrashed);
  device.thrash.Reset();
  if (before == SharingMode::kFree) return BeginTurns(index);
  if (mode != SharingMode::kFree) return;
  for (auto& [job, party] : parties_) {
    if (party.paused || party.parts.count(index) == 0) continue;
    SetFree(job, party, index);
    Settle(party);
  }
}

void TurnScheduler::SetFree(const JobKey& job, TurnParty& party,
                            size_t device) {
  TurnPart& part = party.parts.at(device);
  if (part.has_turn && party.given) {
    over_.push_back({job, device, party.waited, now_ - party.opened});
  }
  part.has_turn = false;
  bool wants = false;
  for (auto& [id, member] : part.members) {
    wants |= member.wants;
    Send(member, true, GateMoment::kNow, absl::ZeroDuration());
  }
  if (wants) given_.push_back({job, device, now_ - party.wanted, false});
}

void TurnScheduler::Settle(TurnParty& party) {
  party.wants =
      std::any_of(party.parts.begin(), party.parts.end(), [](const auto& part) {
        const auto& members = part.second.members;
        return std::any_of(members.begin(), members.end(),
                           [](const auto& m) { return m.second.wants; });
      });
  if (OrderedAnywhere(party)) return EndIfAllHave(party);
  party.phase = Phase::kFree;
  party.given = false;
}

// One goes on; the others have their turns later. Who has a turn on other
// devices runs here, too.
void TurnScheduler::BeginTurns(size_t device) {
  const TurnParty* first = nullptr;
  for (const auto& [job, party] : parties_) {
    if (party.phase != Phase::kFree && party.phase != Phase::kOpen) continue;
    if (party.paused || party.On(device) == nullptr || !Active(party)) continue;
    if (first == nullptr || Before(party, *first)) first = &party;
  }
  for (auto& [job, party] : parties_) {
    const auto it = party.parts.find(device);
    if (party.paused || it == party.parts.end()) continue;
    if (party.phase == Phase::kFree) {
      party.opened = now_;
      party.ended = now_;
      if (&party == first) {
        Open(job, party);
      } else {
        party.quantum = false;
        Close(party, GateMoment::kNow);
      }
      continue;
    }
    TurnPart& part = it->second;
    part.has_turn = party.running();
    if (party.phase == Phase::kOpen && &party != first) {
      Close(party, GateMoment::kNow);
      continue;
    }
    if (party.phase == Phase::kOpen) Give(job, party, device);
    for (auto& [id, member] : part.members) {
      if (party.phase == Phase::kOpen) {
        SendOpen(party, member);
      } else {
        Send(member, false, party.running() ? party.moment : GateMoment::kNow,
             absl::ZeroDuration());
      }
    }
  }
  Book(device);
}

}  // namespace mets::core
