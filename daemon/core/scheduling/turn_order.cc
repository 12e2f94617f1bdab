// TurnScheduler: who is next, what fits together, how long a turn lasts.
#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/core/scheduling/turn_scheduler.h"

namespace mets::core {
namespace {

// Part of max_wait that turns may use up where nobody is late; the rest is for
// those who have waited so long. With several priority classes, half: many of
// a lower class may be late at once.
constexpr double kRoundShare = 0.9;
constexpr double kRoundShareOfClasses = 0.5;
constexpr absl::Duration kShortestCap = absl::Milliseconds(100);
// How long the device is kept for a job that comes back: a part of its step.
constexpr double kKeptShare = 0.02;
constexpr absl::Duration kKeptLeast = absl::Microseconds(500);
constexpr absl::Duration kKeptMost = absl::Milliseconds(5);

}  // namespace

std::vector<size_t> TurnScheduler::TurnDevices(const TurnParty& party) const {
  std::vector<size_t> devices;
  for (const auto& [device, part] : party.parts) {
    if (TakesTurns(party, device)) devices.push_back(device);
  }
  return devices;
}

template <typename Predicate>
bool TurnScheduler::OnSome(const TurnParty& party, Predicate predicate) const {
  for (const auto& [device, part] : party.parts) {
    if (TakesTurns(party, device) && predicate(device, part)) return true;
  }
  return false;
}

bool TurnScheduler::Meet(const TurnParty& a, const TurnParty& b) const {
  return OnSome(
      a, [&](size_t device, const TurnPart&) { return TakesTurns(b, device); });
}

bool TurnScheduler::Known(const TurnParty& party) const {
  return !OnSome(party, [](size_t, const TurnPart& p) { return !p.known(); });
}

bool TurnScheduler::InMode(const TurnParty& party, SharingMode mode) const {
  return OnSome(party, [&](size_t device, const TurnPart&) {
    return devices_[device].mode == mode;
  });
}

double TurnScheduler::Lead(const TurnParty& party) const {
  double most = -std::numeric_limits<double>::infinity();
  for (const auto& [device, part] : party.parts) {
    if (!TakesTurns(party, device)) continue;
    most = std::max(most, part.pass - devices_[device].virtual_time);
  }
  return most;
}

absl::Duration TurnScheduler::AgedAfter(const TurnParty& party) const {
  const bool several_classes =
      OnSome(party, [&](size_t device, const TurnPart&) {
        return devices_[device].several_classes;
      });
  return options_.max_wait *
         (several_classes ? kRoundShareOfClasses : kRoundShare);
}

bool TurnScheduler::Aged(const TurnParty& party) const {
  return party.waiting() && now_ - party.wanted >= AgedAfter(party);
}

bool TurnScheduler::Before(const TurnParty& a, const TurnParty& b) const {
  const auto key = [this](const TurnParty& p) {
    const bool aged = Aged(p);
    return std::make_tuple(!aged, aged ? p.wanted : absl::InfinitePast(),
                           -p.priority, Lead(p), p.wanted);
  };
  return key(a) < key(b);
}

std::vector<std::pair<const TurnScheduler::JobKey, TurnParty>*>
TurnScheduler::Waiting() {
  std::vector<std::pair<const JobKey, TurnParty>*> waiting;
  for (auto& entry : parties_) {
    if (!entry.second.waiting()) continue;
    waiting.push_back(&entry);
    Due(entry.second.wanted + AgedAfter(entry.second));
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [this](const auto* a, const auto* b) {
                     return Before(a->second, b->second);
                   });
  return waiting;
}

// In a round, the job with the least weight waits for all others: their caps
// together are its wait.
absl::Duration TurnScheduler::Cap(const TurnParty& party) const {
  int64_t sum = 0;
  int64_t least = party.weight;
  int waiting = 0;
  bool aged = false;
  for (const auto& [job, other] : parties_) {
    if (&other != &party && !(Active(other) && Meet(party, other))) continue;
    sum += other.weight;
    least = std::min<int64_t>(least, other.weight);
    waiting += other.waiting();
    aged |= Aged(other);
  }
  const int64_t others = std::max<int64_t>(sum - least, 1);
  const absl::Duration round = AgedAfter(party);
  absl::Duration cap = round * party.weight / others;
  if (aged) cap = std::min(cap, (options_.max_wait - round) / waiting);
  return std::clamp(cap, kShortestCap, options_.max_wait);
}

absl::Duration TurnScheduler::TurnLength(const TurnParty& party) const {
  const absl::Duration cap = Cap(party);
  if (!party.quantum) return cap;
  // It was given before the steps were known, or while they did not fit.
  if (!InMode(party, SharingMode::kQuanta) && Known(party)) return {};
  return std::min(cap, party.wish);
}

// A step that nearly ends is waited for: what is live within it would have to
// leave and to come back.
absl::Time TurnScheduler::YieldsAt(const TurnParty& party) const {
  const absl::Time least = party.opened + party.exchange + kShortestCap;
  const absl::Time step_end = party.opened + party.step();
  absl::Duration moving;
  for (size_t device : TurnDevices(party)) {
    const Bytes live = party.parts.at(device).ephemeral();
    moving = std::max(moving, MovingTime(device, live));
  }
  const bool near =
      !party.quantum && now_ < step_end && step_end - now_ <= 2 * moving;
  return near ? step_end : least;
}

absl::Duration TurnScheduler::MovingTime(size_t device, Bytes bytes) const {
  return absl::Seconds(static_cast<double>(bytes.count()) /
                       options_.devices[device].bus_bytes_per_second);
}

Bytes TurnScheduler::Room(size_t index, const TurnParty& party) const {
  const Device& device = devices_[index];
  const TurnPart& part = party.parts.at(index);
  if (Presumed(index, party)) return part.Limited(device.pool);
  if (device.mode == SharingMode::kQuanta) return part.peak();
  return part.known() ? part.ephemeral() : part.Limited(device.pool);
}

bool TurnScheduler::FitsOn(size_t index, const TurnParty& party,
                           const TurnParty* also) const {
  const Device& device = devices_[index];
  if (device.mode == SharingMode::kFree) return true;
  Bytes sum;
  bool alone = true;
  for (const auto& [job, other] : parties_) {
    if (&other == &party || (!other.running() && &other != also)) continue;
    if (other.On(index) == nullptr) continue;
    alone = false;
    sum += Room(index, other);
  }
  if (alone) return true;
  sum += Room(index, party);
  if (device.mode == SharingMode::kTurns) sum += Persistent(index);
  return sum <= device.pool;
}

bool TurnScheduler::Fits(const TurnParty& party, const TurnParty* also) const {
  return !OnSome(party, [&](size_t device, const TurnPart&) {
    return !FitsOn(device, party, also);
  });
}

absl::Duration TurnScheduler::RunTime(const TurnParty& party) const {
  const bool turn = party.step() > absl::ZeroDuration() &&
                    !InMode(party, SharingMode::kQuanta);
  return turn ? party.step() : std::max(party.step(), TurnLength(party));
}

absl::Duration TurnScheduler::KeptAtMost(const TurnParty& party) {
  return std::clamp(party.step() * kKeptShare, kKeptLeast, kKeptMost);
}

absl::Time TurnScheduler::EndsAt(const TurnParty& party) const {
  return party.opened + (party.quantum ? TurnLength(party) : party.step());
}

absl::Time TurnScheduler::BeginsAt(const TurnParty& party) const {
  absl::Time begins = now_;
  for (size_t device : TurnDevices(party)) {
    if (FitsOn(device, party)) continue;
    for (const auto& [job, other] : parties_) {
      if (!other.running() || other.On(device) == nullptr) continue;
      begins = std::max(begins, EndsAt(other));
    }
  }
  return begins;
}

bool TurnScheduler::KeptFor(const TurnParty& next) {
  if (Aged(next)) return false;
  for (const auto& [job, p] : parties_) {
    if (p.phase != Phase::kClosed || p.wants || !Active(p)) continue;
    const bool higher = p.priority > next.priority;
    const bool unknown = p.gap == absl::InfiniteDuration();
    if (p.priority < next.priority ||
        (!higher && (unknown || Lead(p) >= Lead(next))) || Fits(next, &p)) {
      continue;
    }
    const absl::Duration most = KeptAtMost(p);
    if (!higher || unknown) {
      if ((unknown || p.gap <= most) && !Due(p.ended + most)) return true;
      continue;
    }
    const bool in_the_way = now_ + RunTime(next) > p.ended + p.gap;
    if (in_the_way && !Due(p.ended + std::max(most, 3 * p.gap))) return true;
  }
  return false;
}

std::vector<TurnScheduler::Demand> TurnScheduler::Demands() {
  std::vector<Demand> demands(devices_.size());
  for (const auto* entry : Waiting()) {
    const TurnParty& party = entry->second;
    const std::vector<size_t> devices = TurnDevices(party);
    const bool first =
        std::none_of(devices.begin(), devices.end(),
                     [&](auto d) { return demands[d].somebody; });
    for (size_t device : devices) {
      Demand& demand = demands[device];
      demand.somebody |= first;
      demand.blocked |= first && !FitsOn(device, party);
      demand.highest = std::max(demand.highest, party.priority);
    }
  }
  return demands;
}

void TurnScheduler::RaiseVirtualTime() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    bool any = false;
    double least = 0;
    for (const auto& [job, party] : parties_) {
      const TurnPart* part = party.On(i);
      if (part == nullptr || (!party.running() && !party.waiting())) continue;
      least = any ? std::min(least, part->pass) : part->pass;
      any = true;
    }
    if (any)
      devices_[i].virtual_time = std::max(devices_[i].virtual_time, least);
  }
}

absl::Status TurnScheduler::Check(absl::Time now) const {
  std::vector<Bytes> booked(devices_.size());
  std::vector<int> open(devices_.size());
  for (const auto& [job, party] : parties_) {
    if (party.paused
            ? !party.stopped()
            : OrderedAnywhere(party) == (party.phase == Phase::kFree)) {
      return absl::InternalError(
          absl::StrCat("job ", job.second, " has not followed the mode"));
    }
    for (const auto& [device, part] : party.parts) {
      if (party.phase == Phase::kOpen && part.has_turn &&
          party.opened > devices_[device].mode_since) {
        booked[device] += part.booked;
        ++open[device];
      }
    }
    // Each of the others may take a shortest turn and not say that it ends.
    absl::Duration bound = options_.max_wait + options_.order_timeout;
    for (const auto& [other_job, other] : parties_) {
      bound += LastsAfterOrder(other) + absl::Seconds(1);
    }
    if (party.waiting() && now - party.wanted > bound) {
      return absl::InternalError(
          absl::StrCat("job ", job.second, " has waited for ",
                       absl::FormatDuration(now - party.wanted)));
    }
  }
  // Shares may have come since.
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (open[i] > 1 && booked[i] > options_.devices[i].pool) {
      return absl::InternalError(absl::StrCat(open[i], " jobs with turns need ",
                                              booked[i].count(), " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mets::core
