#include "daemon/core/planning/plan_timing.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace mets::core {
namespace {

// Copies take a little longer than their bytes say: messages, mappings.
constexpr double kSpare = 1.1;
constexpr double kLatency = 80e-6;

double Seconds(Bytes bytes, double speed) {
  return static_cast<double>(bytes.count()) / speed;
}

// Occupancy around the cycle of a step.
class Room {
 public:
  Room(const StepProfile& profile, Bytes budget,
       const std::vector<steps::Absence>& absences)
      : budget_(budget), resident_(ResidentBytes(profile, absences)) {}

  // Takes `size` bytes at an op; false when they do not fit.
  bool Take(uint32_t op, Bytes size) {
    if (resident_[op] + size > budget_) return false;
    resident_[op] += size;
    return true;
  }

 private:
  const Bytes budget_;
  std::vector<Bytes> resident_;
};

// The memory of what leaves is not free before its copy has ended.
void OccupyOutgoing(const StepProfile& profile, const BusSpeed& bus,
                    const std::vector<steps::Absence>& absences, Room* room) {
  std::vector<const steps::Absence*> order;
  for (const steps::Absence& absence : absences) {
    if (!absence.clean) order.push_back(&absence);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::make_pair(a->evict_after, a->buffer) <
           std::make_pair(b->evict_after, b->buffer);
  });
  double free_at = 0;
  for (const steps::Absence* absence : order) {
    const Bytes size = profile.size(absence->buffer);
    free_at = std::max(free_at, profile.end(absence->evict_after)) +
              Seconds(size, bus.out) + kLatency;
    for (uint32_t op = absence->evict_after + 1;
         op < profile.ops() && profile.start(op) < free_at; ++op) {
      if (!room->Take(op, size)) break;
    }
  }
}

// When each copy back should begin, by index; negative: in the repetition
// before. The bus serves them in the order of use.
std::vector<double> Targets(const StepProfile& profile, const BusSpeed& bus,
                            const std::vector<steps::Absence>& absences) {
  std::vector<double> targets(absences.size(), 0);
  double next = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {
    for (size_t i = absences.size(); i > 0; --i) {
      const steps::Absence& absence = absences[i - 1];
      if (!absence.returns) continue;
      const double copy =
          Seconds(profile.size(absence.buffer), bus.in) * kSpare + kLatency;
      next = std::min(next, profile.start(absence.use)) - copy;
      targets[i - 1] = next;
    }
    next += profile.duration();
  }
  return targets;
}

}  // namespace

void ChooseTimes(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
                 std::vector<steps::Absence>* absences) {
  for (steps::Absence& absence : *absences) absence.restore_at = absence.use;
  Room room(profile, budget, *absences);
  OccupyOutgoing(profile, bus, *absences, &room);
  const std::vector<double> targets = Targets(profile, bus, *absences);
  const uint32_t n = profile.ops();
  for (size_t i = 0; i < absences->size(); ++i) {
    steps::Absence& absence = (*absences)[i];
    if (!absence.returns) continue;
    const Bytes size = profile.size(absence.buffer);
    double wrapped = 0;  // Seconds of the repetitions before.
    for (;;) {
      uint32_t op = absence.restore_at;
      if (op == 0) {
        op = n;
        wrapped = profile.duration();
      }
      --op;
      // The copy begins behind op's start, so the op before the target's.
      if (profile.start(absence.restore_at == n ? 0 : absence.restore_at) -
                  (op + 1 == n ? 0 : wrapped) <=
              targets[i] ||
          op == absence.evict_after || !room.Take(op, size)) {
        break;
      }
      absence.restore_at = op;
    }
  }
}

namespace {

// Follows a plan in time.
class Replay {
 public:
  Replay(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
         const std::vector<steps::Absence>& absences)
      : profile_(profile),
        budget_(budget),
        bus_(bus),
        absences_(absences),
        by_evict_(profile.ops()),
        by_use_(profile.ops()) {
    used_ = ResidentBytes(profile, absences)[0];
    for (const steps::Access& access : profile.program().ops[0].accesses) {
      const bool fresh = access.kind == steps::AccessKind::kNew &&
                         !profile.program().buffers[access.buffer].persistent;
      if (fresh) used_ -= profile.size(access.buffer);
    }
    for (uint32_t i = 0; i < absences.size(); ++i) {
      by_evict_[absences[i].evict_after].push_back(i);
      if (absences[i].returns) by_use_[absences[i].use].push_back(i);
    }
    for (uint32_t i = 0; i < absences.size(); ++i) {
      if (absences[i].returns) order_.push_back(i);
    }
    // Those whose copy belongs to the repetition before are there at first.
    ready_.assign(absences.size(), 0);
  }

  // The time at which the repetition ends that begins now.
  double Repeat() {
    for (uint32_t op = 0; op < profile_.ops(); ++op) Step(op);
    ++repetition_;
    const double rest = profile_.duration() - profile_.end(profile_.ops() - 1);
    now_ += std::max(0.0, rest);
    return now_;
  }

 private:
  struct Leaving {
    double at;
    Bytes size;
  };

  // The earliest time from `from` on at which `size` bytes are free.
  double WaitForRoom(Bytes size, double from) {
    double at = from;
    while (!leaving_.empty() &&
           (leaving_.front().at <= from || used_ + size > budget_)) {
      at = std::max(at, leaving_.front().at);
      used_ -= leaving_.front().size;
      leaving_.pop_front();
    }
    return at;
  }

  // Position of an op counted over all repetitions.
  uint64_t Absolute(uint64_t repetition, uint32_t op) const {
    return repetition * profile_.ops() + op;
  }

  // Starts copies back that may begin when `op` does, and that find room.
  void StartRestores(uint32_t op, double now) {
    const uint64_t here = Absolute(repetition_, op);
    while (!order_.empty()) {
      const uint64_t number = next_restore_ / order_.size();
      const uint32_t i = order_[next_restore_ % order_.size()];
      const steps::Absence& absence = absences_[i];
      const bool before = absence.restore_at > absence.use;
      if (before && number == 0) {  // Done in the repetition before the first.
        ++next_restore_;
        continue;
      }
      if (Absolute(before ? number - 1 : number, absence.restore_at) > here) {
        return;
      }
      const Bytes size = profile_.size(absence.buffer);
      const bool must = absence.use == op && number == repetition_;
      const double room = WaitForRoom(size, std::max(now, in_free_));
      if (!must && used_ + size > budget_) return;
      used_ += size;
      in_free_ = room + kLatency + Seconds(size, bus_.in);
      ready_[i] = in_free_;
      ++next_restore_;
    }
  }

  void Step(uint32_t op) {
    const double gap =
        profile_.start(op) - (op == 0 ? 0 : profile_.end(op - 1));
    double start = now_ + gap;
    StartRestores(op, start);
    for (uint32_t i : by_use_[op]) start = std::max(start, ready_[i]);
    Bytes fresh;
    for (const steps::Access& access : profile_.program().ops[op].accesses) {
      if (access.kind == steps::AccessKind::kNew &&
          !profile_.program().buffers[access.buffer].persistent) {
        fresh += profile_.size(access.buffer);
      }
    }
    if (!fresh.is_zero()) start = WaitForRoom(fresh, start);
    used_ += fresh;
    now_ = start + profile_.end(op) - profile_.start(op);
    for (uint32_t i : by_evict_[op]) Leave(absences_[i]);
    for (uint32_t b : profile_.program().ops[op].frees) {
      const bool away = std::any_of(
          absences_.begin(), absences_.end(),
          [&](const steps::Absence& a) { return a.buffer == b && !a.returns; });
      if (!profile_.program().buffers[b].persistent && !away) {
        used_ -= profile_.size(b);
      }
    }
  }

  void Leave(const steps::Absence& absence) {
    if (profile_.buffer(absence.buffer).uses.empty()) return;
    const Bytes size = profile_.size(absence.buffer);
    double at = now_;
    if (!absence.clean) {
      out_free_ =
          std::max(out_free_, now_) + Seconds(size, bus_.out) + kLatency;
      at = out_free_;
    }
    // Clean ones overtake.
    auto place = leaving_.end();
    while (place != leaving_.begin() && std::prev(place)->at > at) --place;
    leaving_.insert(place, {at, size});
  }

  const StepProfile& profile_;
  const Bytes budget_;
  const BusSpeed bus_;
  const std::vector<steps::Absence>& absences_;
  std::vector<std::vector<uint32_t>> by_evict_, by_use_;
  std::vector<uint32_t> order_;  // Of the copies back.
  uint64_t next_restore_ = 0;
  uint64_t repetition_ = 0;
  std::vector<double> ready_;
  std::deque<Leaving> leaving_;
  Bytes used_;
  double now_ = 0, in_free_ = 0, out_free_ = 0;
};

}  // namespace

double EstimateDuration(const StepProfile& profile, Bytes budget,
                        const BusSpeed& bus,
                        const std::vector<steps::Absence>& absences) {
  constexpr int kSettling = 2;
  Replay replay(profile, budget, bus, absences);
  double before = 0;
  for (int i = 0; i < kSettling; ++i) before = replay.Repeat();
  return replay.Repeat() - before;
}

}  // namespace mets::core
