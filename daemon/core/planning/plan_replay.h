// PlanReplay: how long a step takes with a plan.
#ifndef METS_DAEMON_CORE_PLANNING_PLAN_REPLAY_H_
#define METS_DAEMON_CORE_PLANNING_PLAN_REPLAY_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "common/base/bytes.h"
#include "common/steps/step_plan.h"
#include "daemon/core/planning/absence_chooser.h"
#include "daemon/core/planning/step_profile.h"

namespace mets::core {

// Follows a plan event by event as a client does: so many moves each way at a
// time, for which the bus copies one after the other; evictions in the order in
// which their ops end, restores in the order of their places, each as soon as
// there is memory for it; an op takes all that it lacks at once, before any
// restore, and copies back itself what is not there.
//
// Not thread-safe. Borrows what it is given.
class PlanReplay {
 public:
  // REQUIRES: the absences are sorted by `use`.
  PlanReplay(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
             const std::vector<steps::Absence>& absences);

  // Runs one repetition more and returns its seconds; infinity when an op finds
  // no memory, and nothing leaves that could end that.
  double Repeat();

 private:
  enum class Place : uint8_t {
    kNone,
    kHere,
    kQueued,
    kLeaving,
    kAway,
    kComing
  };

  // Out of the device, and when its memory is free.
  struct Leaving {
    uint32_t buffer;
    uint32_t copy;  // Stays what copy_ says, unless the buffer stays.
    double ends;
  };

  void PlaceAtFirst();
  // False: there is no memory.
  bool Run(uint32_t op);
  // Whether the op may start now; takes its memory once there is enough.
  bool Ready(uint32_t op, bool* taken);
  bool Take(uint32_t op);
  bool Missing(const steps::Access& access) const;
  void Free(uint32_t buffer);
  void Post(uint32_t op);
  void Advance(double until);
  double NextEvent() const;
  // The buffer's memory is free, if it has not stayed.
  void HasLeft(const Leaving& leaving);
  void EvictNext(double at);
  void RestoreNext(double at);
  double CopyBack(uint32_t buffer, double at);
  bool Fits(Bytes size) const { return used_ + size <= budget_; }

  const StepProfile& profile_;
  const Bytes budget_;
  const BusSpeed bus_;
  const double latency_;  // Of each move: one CPU maps for all of them.
  const std::vector<steps::Absence>& absences_;
  std::vector<std::vector<uint32_t>> leave_after_;  // Absences, by op.
  std::vector<steps::PlannedReturn> returns_;
  size_t next_return_ = 0;

  std::vector<Place> place_;
  std::vector<bool> dirty_;    // Its slot does not hold what it has.
  std::vector<Place> old_;     // What was replaced, until it is freed.
  std::vector<double> ready_;  // When what is coming is here.
  Bytes used_;
  double now_ = 0;
  double out_free_ = 0, in_free_ = 0;  // When the bus has copied what it has.
  bool op_waits_ = false;              // For memory.
  std::deque<uint32_t> to_evict_;      // Absences.
  std::deque<uint32_t> to_restore_;
  // Moves for the plan.
  std::vector<Leaving> leaving_;
  std::vector<double> coming_;  // When they end.
  std::vector<uint32_t> copy_;  // Of each buffer: the last that left with it.
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PLANNING_PLAN_REPLAY_H_
