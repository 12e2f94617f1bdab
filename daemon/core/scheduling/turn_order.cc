// TurnScheduler: who is next, what fits together, how long a turn lasts.
#include <algorithm>
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

absl::Duration TurnScheduler::AgedAfter() const {
  return options_.max_wait *
         (several_classes_ ? kRoundShareOfClasses : kRoundShare);
}

bool TurnScheduler::Aged(const TurnParty& party) const {
  return party.waiting() && now_ - party.wanted >= AgedAfter();
}

bool TurnScheduler::SomebodyAged() const {
  return std::any_of(parties_.begin(), parties_.end(),
                     [this](const auto& p) { return Aged(p.second); });
}

int64_t TurnScheduler::WaitingCount() const {
  return std::count_if(parties_.begin(), parties_.end(),
                       [](const auto& p) { return p.second.waiting(); });
}

bool TurnScheduler::Before(const TurnParty& a, const TurnParty& b) const {
  const auto key = [this](const TurnParty& p) {
    const bool aged = Aged(p);
    return std::make_tuple(!aged, aged ? p.wanted : absl::InfinitePast(),
                           -p.priority, p.pass, p.wanted);
  };
  return key(a) < key(b);
}

std::vector<std::pair<const TurnScheduler::JobKey, TurnParty>*>
TurnScheduler::Waiting() {
  std::vector<std::pair<const JobKey, TurnParty>*> waiting;
  for (auto& entry : parties_) {
    if (!entry.second.waiting()) continue;
    waiting.push_back(&entry);
    Due(entry.second.wanted + AgedAfter());
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
  for (const auto& [job, other] : parties_) {
    if (&other != &party && !Active(other)) continue;
    sum += other.weight;
    least = std::min<int64_t>(least, other.weight);
  }
  const int64_t others = std::max<int64_t>(sum - least, 1);
  absl::Duration cap = AgedAfter() * party.weight / others;
  if (SomebodyAged()) {
    cap = std::min(cap, (options_.max_wait - AgedAfter()) / WaitingCount());
  }
  return std::clamp(cap, kShortestCap, options_.max_wait);
}

absl::Duration TurnScheduler::TurnLength(const TurnParty& party) const {
  const absl::Duration cap = Cap(party);
  if (!party.quantum) return cap;
  // It was given before the steps were known, or while they did not fit.
  if (mode_ == SharingMode::kTurns && party.known()) return {};
  return std::min(cap, party.wish);
}

// A step that nearly ends is waited for: what is live within it would have to
// leave and to come back.
absl::Time TurnScheduler::YieldsAt(const TurnParty& party) const {
  const absl::Time least = party.opened + party.exchange + kShortestCap;
  const absl::Time step_end = party.opened + party.step();
  const bool near = !party.quantum && now_ < step_end &&
                    step_end - now_ <= 2 * MovingTime(party.ephemeral());
  return near ? step_end : least;
}

absl::Duration TurnScheduler::MovingTime(Bytes bytes) const {
  return absl::Seconds(static_cast<double>(bytes.count()) /
                       options_.bus_bytes_per_second);
}

Bytes TurnScheduler::Room(const TurnParty& party) const {
  if (Presumed(party)) return party.Limited(pool_);
  if (mode_ == SharingMode::kQuanta) return party.peak();
  return party.known() ? party.ephemeral() : party.Limited(pool_);
}

bool TurnScheduler::Fits(const TurnParty& party, const TurnParty* also) const {
  Bytes sum;
  bool alone = true;
  for (const auto& [job, other] : parties_) {
    if (&other == &party || (!other.running() && &other != also)) continue;
    alone = false;
    sum += Room(other);
  }
  if (alone) return true;
  sum += Room(party);
  if (mode_ == SharingMode::kTurns) sum += Persistent();
  return sum <= pool_;
}

bool TurnScheduler::KeptFor(const TurnParty& next) {
  if (Aged(next)) return false;
  for (const auto& [job, p] : parties_) {
    if (p.phase != Phase::kClosed || p.wants || !Active(p)) continue;
    const bool higher = p.priority > next.priority;
    const bool unknown = p.gap == absl::InfiniteDuration();
    if (p.priority < next.priority ||
        (!higher && (unknown || p.pass >= next.pass)) || Fits(next, &p)) {
      continue;
    }
    const absl::Duration most =
        std::clamp(p.step() * kKeptShare, kKeptLeast, kKeptMost);
    if (!higher || unknown) {
      if ((unknown || p.gap <= most) && !Due(p.ended + most)) return true;
      continue;
    }
    absl::Duration run = next.step();
    if (run == absl::ZeroDuration() || mode_ == SharingMode::kQuanta) {
      run = std::max(run, TurnLength(next));
    }
    const bool in_the_way = now_ + run > p.ended + p.gap;
    if (in_the_way && !Due(p.ended + std::max(most, 3 * p.gap))) return true;
  }
  return false;
}

void TurnScheduler::RaiseVirtualTime() {
  bool any = false;
  double least = 0;
  for (const auto& [job, party] : parties_) {
    if (!party.running() && !party.waiting()) continue;
    least = any ? std::min(least, party.pass) : party.pass;
    any = true;
  }
  if (any) virtual_time_ = std::max(virtual_time_, least);
}

absl::Status TurnScheduler::Check(absl::Time now) const {
  Bytes booked;
  int open = 0;
  for (const auto& [job, party] : parties_) {
    if (party.paused
            ? !party.stopped()
            : (mode_ == SharingMode::kFree) != (party.phase == Phase::kFree)) {
      return absl::InternalError(
          absl::StrCat("job ", job.second, " has not followed the mode"));
    }
    if (party.phase == Phase::kOpen && party.opened > mode_since_) {
      booked += party.booked;
      ++open;
    }
    // Each of the others may take a shortest turn and not say that it ends.
    absl::Duration bound = options_.max_wait + options_.order_timeout;
    for (const auto& [other_job, other] : parties_) {
      bound += EndsWithin(other) + absl::Seconds(1);
    }
    if (party.waiting() && now - party.wanted > bound) {
      return absl::InternalError(
          absl::StrCat("job ", job.second, " has waited for ",
                       absl::FormatDuration(now - party.wanted)));
    }
  }
  // Shares may have come since.
  if (open > 1 && booked > options_.pool) {
    return absl::InternalError(
        absl::StrCat(open, " jobs with turns need ", booked.count(), " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace mets::core
