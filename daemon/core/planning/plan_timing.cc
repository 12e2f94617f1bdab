#include "daemon/core/planning/plan_timing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/core/planning/plan_replay.h"

namespace mets::core {
namespace {

// Copies take a little longer than their bytes say: messages, mappings.
constexpr double kSpare = 1.1;

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
              CopySeconds(size, bus.out) + kCopyLatency;
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
          CopySeconds(profile.size(absence.buffer), bus.in) * kSpare +
          kCopyLatency;
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

double EstimateDuration(const StepProfile& profile, Bytes budget,
                        const BusSpeed& bus,
                        const std::vector<steps::Absence>& absences) {
  constexpr int kSettling = 2;
  PlanReplay replay(profile, budget, bus, absences);
  for (int i = 0; i < kSettling; ++i) replay.Repeat();
  return replay.Repeat();
}

}  // namespace mets::core
