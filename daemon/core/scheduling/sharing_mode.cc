// TurnScheduler: how the device is shared.
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

// Beside jobs of other classes, a job is too new to be known for this long.
// Long, because a lower class that waits does not get to know its step; not for
// ever, because some programs have none.
constexpr absl::Duration kNewFor = absl::Minutes(5);

// To go back, needs must be smaller than what they were to come here.
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

int TurnScheduler::CountActive() {
  int active = 0;
  int lowest = std::numeric_limits<int>::max();
  int highest = std::numeric_limits<int>::min();
  for (auto& [job, party] : parties_) {
    party.most_live = std::max(party.most_live, party.live());
    if (!Active(party)) continue;
    ++active;
    lowest = std::min(lowest, party.priority);
    highest = std::max(highest, party.priority);
    party.began = std::min(party.began, now_);
    if (mode_ == SharingMode::kFree) continue;
    Due(party.last_seen + AwayAfter(party));
    if (!party.known()) Due(party.began + kNewFor);
  }
  several_classes_ = lowest < highest;
  return active;
}

bool TurnScheduler::Presumed(const TurnParty& party) const {
  if (party.known()) return false;
  if (party.gated()) return true;
  return several_classes_ && now_ < party.began + kNewFor && !HasFitted(party);
}

bool TurnScheduler::HasFitted(const TurnParty& party) const {
  Bytes sum = party.Limited(party.most_live);
  bool highest = true;
  for (const auto& [job, other] : parties_) {
    if (&other == &party || !Active(other)) continue;
    if (other.priority > party.priority) {
      if (!other.known()) return false;
      highest = false;
    }
    sum += other.known() ? other.peak() : other.Limited(other.most_live);
  }
  return !highest &&
         sum <= (mode_ == SharingMode::kFree ? pool_ : Part(pool_, 95));
}

bool TurnScheduler::SeveralGated() const {
  return std::count_if(parties_.begin(), parties_.end(), [](const auto& p) {
           return p.second.gated() && !p.second.rests();
         }) > 1;
}

void TurnScheduler::LookForThrash() {
  if (mode_ != SharingMode::kFree) return;
  std::map<const void*, Bytes> moved;
  for (const auto& [job, party] : parties_) {
    if (!Active(party)) continue;
    moved[&party] = party.moved();
  }
  thrash_.Look(now_, moved);
}

Bytes TurnScheduler::WorkingSet(const TurnParty& party) const {
  // Of a gated one nothing can leave while it needs more than it said.
  if (party.known()) {
    return party.gated() ? std::max(party.peak(), party.live()) : party.peak();
  }
  if (Presumed(party)) return party.Limited(pool_);
  const bool live =
      mode_ != SharingMode::kFree || several_classes_ || thrash_.thrashing();
  return live ? party.Limited(party.live()) : party.resident();
}

Bytes TurnScheduler::Persistent() const {
  Bytes sum;
  for (const auto& [job, party] : parties_) {
    if (Active(party)) sum += party.persistent();
  }
  return sum;
}

SharingMode TurnScheduler::WantedMode(int active) const {
  const bool gated_ones = SeveralGated();
  if (active < 2 && !gated_ones) return SharingMode::kFree;
  Bytes working_sets, largest;
  bool known = true, gated = false;
  for (const auto& [job, party] : parties_) {
    if (party.rests()) continue;
    if (!Active(party) && !(gated_ones && party.gated())) continue;
    working_sets += WorkingSet(party);
    largest = std::max(largest, party.ephemeral());
    known &= party.known();
    gated |= party.gated() && !party.known();
  }
  const bool free = mode_ == SharingMode::kFree;
  if (working_sets <= (free ? pool_ : Part(pool_, 95))) {
    return SharingMode::kFree;
  }
  if (thrashed_ && !known && !gated && now_ >= mode_since_ + kTryAgain) {
    return SharingMode::kFree;
  }
  // Where only one computes, its quantum ends when another comes.
  if (fixed() || active < 2) return SharingMode::kQuanta;
  const bool quanta = mode_ == SharingMode::kQuanta;
  return Persistent() + largest <= (quanta ? Part(pool_, 97) : pool_)
             ? SharingMode::kTurns
             : SharingMode::kQuanta;
}

void TurnScheduler::ChooseMode() {
  const int active = CountActive();
  if (thrashed_) Due(mode_since_ + kTryAgain);
  const SharingMode wanted = WantedMode(active);
  if (wanted == mode_) return;
  if (active < 2 || Due(mode_since_ + kShortestMode)) ChangeMode(wanted);
}

void TurnScheduler::ChangeMode(SharingMode mode) {
  const SharingMode before = mode_;
  mode_ = mode;
  mode_since_ = now_;
  thrashed_ = mode != SharingMode::kFree &&
              (before == SharingMode::kFree ? thrash_.thrashing() : thrashed_);
  thrash_.Reset();
  if (mode == SharingMode::kFree) {
    for (auto& [job, party] : parties_) {
      if (party.paused) continue;
      if (party.wants) given_.push_back({job, now_ - party.wanted, false});
      if (party.running()) NoteOver(party);
      party.given = false;
      party.phase = Phase::kFree;
      party.wants = false;
      for (auto& [id, member] : party.members) {
        Send(member, true, GateMoment::kNow, absl::ZeroDuration());
      }
    }
    return;
  }
  if (before != SharingMode::kFree) return;
  // One goes on; the others have their turns later.
  auto first = parties_.end();
  for (auto it = parties_.begin(); it != parties_.end(); ++it) {
    if (it->second.paused || !Active(it->second)) continue;
    if (first == parties_.end() || Before(it->second, first->second)) {
      first = it;
    }
  }
  for (auto it = parties_.begin(); it != parties_.end(); ++it) {
    TurnParty& party = it->second;
    if (party.paused) continue;
    party.opened = now_;
    party.ended = now_;
    if (it == first) {
      Open(it->first, party);
    } else {
      party.quantum = false;
      Close(party, GateMoment::kNow);
    }
  }
}

}  // namespace mets::core
