// TurnScheduler: how turns begin and end.
#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/core/scheduling/turn_scheduler.h"

namespace mets::core {
namespace {

// How long a gate that is open for a turn may see no op: a step's end that
// nobody noticed, or a program that does something else.
constexpr absl::Duration kIdleTurn = absl::Milliseconds(50);
// The same within a quantum, at most: where a hand-over moves bytes, somebody
// else gets the device when it has been idle for as long as handing it over
// and back takes, which costs at most twice what the best guess would.
constexpr absl::Duration kIdleQuantum = absl::Seconds(1);
// What quanta have cost is no more than so many times what the bus needed: the
// rest, as of the first steps of a program, does not come again.
constexpr int64_t kDearestExchange = 4;
constexpr absl::Duration kShortestQuantum = absl::Milliseconds(200);
// Beyond its length, until a step's end is not waited for any more.
constexpr absl::Duration kStepGrace = absl::Milliseconds(100);
// A client may say that it used less of its turn than it had, down to this.
constexpr double kLeastCharge = 0.25;
// How often those that wait go on for others: two are enough where processes
// wait for each other within steps; each waits twice as long as the last,
// because those that do not wait for each other end at different times.
constexpr int kMostCatchUps = 3;
// The same where steps are not known: they go on until the others have ended,
// and may then be where others would have to go on for them.
constexpr int kMostWithoutSteps = 16;

}  // namespace

void TurnScheduler::Send(TurnMember& member, bool open, GateMoment moment,
                         absl::Duration idle) {
  member.order = ids_.Next();
  member.open = open;
  member.ended = member.wants = false;
  GateOrder order;
  order.session = member.facts.session;
  order.order = member.order;
  order.device = options_.devices[member.facts.device].name;
  order.open = open;
  order.moment = moment;
  order.idle = idle;
  orders_.push_back(std::move(order));
}

void TurnScheduler::SendOpen(const TurnParty& party, TurnMember& member) {
  const bool quantum = party.in_quantum();
  Send(member, true, quantum ? GateMoment::kNow : GateMoment::kStepEnd,
       quantum ? IdleQuantum(party) : kIdleTurn);
}

absl::Duration TurnScheduler::IdleQuantum(const TurnParty& party) const {
  if (fixed()) return kIdleQuantum;
  const absl::Duration cost =
      std::min(ExchangeCost(party), kDearestExchange * party.exchange);
  return std::clamp(2 * cost, kIdleTurn, kIdleQuantum);
}

bool TurnScheduler::OpenLate(TurnParty& party, size_t device,
                             TurnMember& member) {
  TurnPart& part = party.parts.at(device);
  if (!part.has_turn && !FitsOn(device, party)) return false;
  part.has_turn = true;
  Book(device);
  SendOpen(party, member);
  return true;
}

void TurnScheduler::EndIfAllHave(TurnParty& party) {
  if (!party.running()) return;
  bool all = true, late = true;
  for (size_t device : TurnDevices(party)) {
    for (const auto& [id, member] : party.parts.at(device).members) {
      all &= member.ended;
      late &= member.ended || member.open;
    }
  }
  if (all) return End(party);
  // They went on for those that have ended now. A step's end comes by itself.
  if (late && party.phase == Phase::kClosing &&
      party.step() == absl::ZeroDuration()) {
    Close(party, GateMoment::kNow);
  }
}

void TurnScheduler::End(TurnParty& party) {
  absl::Duration computed, stalled;
  bool told = true;
  const std::vector<size_t> devices = TurnDevices(party);
  for (size_t device : devices) {
    for (auto& [id, member] : party.parts.at(device).members) {
      told &= member.ended;
      computed = std::max(
          computed, member.ended ? member.computed : absl::InfiniteDuration());
      stalled = std::max(stalled, member.stalled);
      member.computed = member.stalled = absl::ZeroDuration();
    }
  }
  const absl::Duration had = now_ - party.opened;
  computed = std::clamp(computed, had * kLeastCharge, had);
  if (party.quantum && told) LearnCost(party, std::min(stalled, had));
  for (size_t device : devices) {
    TurnPart& part = party.parts.at(device);
    const JobKey& job = part.members.begin()->second.facts.job;
    part.pass += absl::ToDoubleSeconds(computed) / party.weight;
    if (party.given) {
      over_.push_back({job, device, party.waited, had});
    }
    part.has_turn = false;
  }
  party.given = false;
  party.phase = Phase::kClosed;
  party.ended = now_;
  party.wanted = now_;  // So far it has waited for none but itself.
  party.last_seen = std::max(party.last_seen, now_ - (had - computed));
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
  if (party.phase != Phase::kClosing) {
    party.catch_ups = 0;
    // Processes may wait for each other within a step.
    const bool steps = party.gates() > 1 && party.step() > absl::ZeroDuration();
    if (steps && !party.paused) moment = GateMoment::kStepEnd;
  }
  party.phase = Phase::kClosing;
  party.last_word = now_;
  party.moment = moment;
  for (auto& [device, part] : party.parts) {
    if (!Ordered(party, device)) continue;
    for (auto& [id, member] : part.members) {
      if (member.ended && member.order.ok()) continue;
      Send(member, false, moment, absl::ZeroDuration());
    }
  }
}

absl::Duration TurnScheduler::EndsWithin(const TurnParty& party) const {
  const absl::Duration within =
      party.gated() ? std::max(options_.order_timeout, options_.max_wait)
                    : options_.order_timeout;
  return party.gates() > 1 ? within + party.step() : within;
}

absl::Duration TurnScheduler::LastsAfterOrder(const TurnParty& party) const {
  const size_t gates = party.gates();
  if (gates < 2) return EndsWithin(party);
  const absl::Duration patience = party.step() + kStepGrace;
  return 3 * EndsWithin(party) + 96 * static_cast<int64_t>(gates) * patience;
}

void TurnScheduler::Book(size_t device) {
  for (auto& [job, party] : parties_) {
    if (!party.running() || party.On(device) == nullptr) continue;
    party.parts.at(device).booked = Room(device, party);
  }
}

void TurnScheduler::Give(const JobKey& job, const TurnParty& party,
                         size_t device) {
  Book(device);
  given_.push_back({job, device, party.waited, true});
  ++(party.quantum ? devices_[device].quanta : devices_[device].turns);
}

void TurnScheduler::Open(const JobKey& job, TurnParty& party) {
  party.given = true;
  party.waited = party.wants ? now_ - party.wanted : absl::ZeroDuration();
  party.phase = Phase::kOpen;
  party.quantum = InMode(party, SharingMode::kQuanta) || !Known(party);
  party.opened = now_;
  party.wants = false;
  party.catch_ups = 0;
  party.last_word = now_;
  party.exchange = absl::ZeroDuration();
  const std::vector<size_t> devices = TurnDevices(party);
  for (size_t device : devices) {
    TurnPart& part = party.parts.at(device);
    part.has_turn = true;
    const Bytes lacks = std::min(part.swapped(), part.peak());
    party.exchange = std::max(party.exchange, MovingTime(device, lacks));
    Give(job, party, device);
  }
  party.wish = std::max({kShortestQuantum, party.step(),
                         ExchangeCost(party) / options_.moving_share});
  if (fixed()) party.wish = options_.fixed_quantum;
  for (size_t device : devices) {
    for (auto& [id, member] : party.parts.at(device).members) {
      SendOpen(party, member);
    }
  }
}

absl::Duration TurnScheduler::Patience(const TurnParty& party) const {
  const absl::Duration step = party.step();
  if (step == absl::ZeroDuration()) return kStepGrace;
  return (step + kStepGrace) * (1 << std::min(party.catch_ups, kMostCatchUps));
}

bool TurnScheduler::CatchUp(TurnParty& party) {
  if (!party.running() || party.paused) return false;
  std::vector<std::pair<size_t, TurnMember*>> waiting;
  for (size_t device : TurnDevices(party)) {
    for (auto& [id, member] : party.parts.at(device).members) {
      if (member.ended && member.wants) waiting.push_back({device, &member});
    }
  }
  if (waiting.empty()) return false;
  const bool due = Due(party.last_word + Patience(party));
  const bool steps = party.step() > absl::ZeroDuration();
  if (party.catch_ups >= (steps ? kMostCatchUps : kMostWithoutSteps)) {
    if (due && party.phase == Phase::kOpen) Close(party, GateMoment::kStepEnd);
    return false;
  }
  if (!due) return true;
  ++party.catch_ups;
  party.last_word = now_;
  for (const auto& [device, member] : waiting) {
    if (!OpenLate(party, device, *member)) CloseOthers(party, device);
  }
  return true;
}

void TurnScheduler::CloseOthers(const TurnParty& party, size_t device) {
  for (auto& [job, other] : parties_) {
    if (&other == &party || other.phase != Phase::kOpen) continue;
    const TurnPart* part = other.On(device);
    if (part != nullptr && part->has_turn) Close(other, GateMoment::kStepEnd);
  }
}

void TurnScheduler::CloseWhatIsOver() {
  const std::vector<Demand> demands = Demands();
  for (auto& [job, party] : parties_) {
    const absl::Time end = party.opened + TurnLength(party);
    const absl::Duration step = party.step();
    bool blocked = false;
    int highest = std::numeric_limits<int>::min();
    for (size_t device : TurnDevices(party)) {
      blocked |= demands[device].blocked;
      highest = std::max(highest, demands[device].highest);
    }
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
    }
    if (CatchUp(party) || party.phase != Phase::kClosing) continue;
    if (party.moment == GateMoment::kStepEnd) {
      if (Due(std::max(end, party.last_word + step) + kStepGrace)) {
        Close(party, GateMoment::kNow);
      }
    } else if (Due(party.last_word + EndsWithin(party))) {
      End(party);
    }
  }
}

// What was small when it was opened has grown, or its need has become known.
void TurnScheduler::CloseWhatNoLongerFits() {
  for (size_t device = 0; device < devices_.size(); ++device) {
    if (devices_[device].mode == SharingMode::kFree) continue;
    for (;;) {
      Bytes sum = devices_[device].mode == SharingMode::kTurns
                      ? Persistent(device)
                      : Bytes();
      int open = 0;
      TurnParty* last = nullptr;
      for (auto& [job, party] : parties_) {
        const TurnPart* part = party.On(device);
        if (party.phase != Phase::kOpen || part == nullptr) continue;
        if (!part->has_turn) continue;
        sum += Room(device, party);
        ++open;
        if (last == nullptr || Before(*last, party)) last = &party;
      }
      if (open < 2 || sum <= devices_[device].pool) break;
      const bool steps = last->step() > absl::ZeroDuration();
      Close(*last, steps ? GateMoment::kStepEnd : GateMoment::kNow);
    }
  }
}

void TurnScheduler::OpenWhatFits() {
  // Until then, others may use what is kept for those that go first.
  std::vector<absl::Time> kept(devices_.size(), absl::InfiniteFuture());
  for (auto* entry : Waiting()) {
    auto& [job, party] = *entry;
    absl::Time until = absl::InfiniteFuture();
    for (size_t device : TurnDevices(party)) {
      until = std::min(until, kept[device]);
    }
    if (now_ + RunTime(party) > until + KeptAtMost(party)) continue;
    if (Fits(party) && !KeptFor(party)) {
      Open(job, party);
    } else if (until == absl::InfiniteFuture()) {
      const absl::Time begins = BeginsAt(party);
      for (size_t device : TurnDevices(party)) kept[device] = begins;
    }
  }
}

}  // namespace mets::core
