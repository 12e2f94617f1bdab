#include "daemon/core/planning/plan_replay.h"

#include <algorithm>
#include <limits>

namespace mets::core {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

PlanReplay::PlanReplay(const StepProfile& profile, Bytes budget,
                       const BusSpeed& bus,
                       const std::vector<steps::Absence>& absences)
    : profile_(profile),
      budget_(budget),
      bus_(bus),
      latency_(bus.moves * kCopyLatency),
      absences_(absences),
      leave_after_(profile.ops()),
      place_(profile.program().buffers.size(), Place::kNone),
      dirty_(place_.size(), true),
      old_(place_.size(), Place::kNone),
      ready_(place_.size(), 0),
      copy_(place_.size(), 0) {
  for (uint32_t i = 0; i < absences.size(); ++i) {
    if (profile.buffer(absences[i].buffer).uses.empty()) continue;
    leave_after_[absences[i].evict_after].push_back(i);
  }
  returns_ = steps::ReturnsOf(absences_, profile_.ops());
  PlaceAtFirst();
}

void PlanReplay::PlaceAtFirst() {
  for (uint32_t b = 0; b < place_.size(); ++b) {
    const bool persistent = profile_.program().buffers[b].persistent;
    if (persistent && !profile_.buffer(b).uses.empty()) {
      place_[b] = Place::kHere;
    }
  }
  for (const steps::Absence& absence : absences_) {
    const bool across = absence.returns && absence.use <= absence.evict_after;
    if (across && place_[absence.buffer] == Place::kHere) {
      place_[absence.buffer] = Place::kAway;
      dirty_[absence.buffer] = false;
    }
  }
  for (uint32_t b = 0; b < place_.size(); ++b) {
    if (place_[b] == Place::kHere) used_ += profile_.size(b);
  }
}

double PlanReplay::Repeat() {
  const double begin = now_;
  for (uint32_t op = 0; op < profile_.ops(); ++op) {
    if (!Run(op)) return kNever;
  }
  Advance(now_ + std::max(0.0, profile_.duration() -
                                   profile_.end(profile_.ops() - 1)));
  return now_ - begin;
}

bool PlanReplay::Run(uint32_t op) {
  const double gap = profile_.start(op) - (op == 0 ? 0 : profile_.end(op - 1));
  Advance(now_ + gap);
  Post(op);
  bool taken = false;
  while (!Ready(op, &taken)) {
    double next = NextEvent();
    for (const steps::Access& access : profile_.accesses(op)) {
      const double ready = ready_[access.buffer];
      if (place_[access.buffer] == Place::kComing && ready > now_) {
        next = std::min(next, ready);
      }
    }
    if (next == kNever) return false;
    Advance(next);
  }
  RestoreNext(now_);
  Advance(now_ + profile_.end(op) - profile_.start(op));
  for (uint32_t i : leave_after_[op]) {
    Place& place = place_[absences_[i].buffer];
    if (place != Place::kHere) continue;
    place = Place::kQueued;
    to_evict_.push_back(i);
  }
  for (uint32_t b : profile_.program().ops[op].frees) {
    if (profile_.frees(b)) Free(b);
  }
  EvictNext(now_);
  RestoreNext(now_);
  return true;
}

bool PlanReplay::Ready(uint32_t op, bool* taken) {
  for (const steps::Access& access : profile_.accesses(op)) {
    Place& place = place_[access.buffer];
    if (place == Place::kQueued || place == Place::kLeaving) {
      place = Place::kHere;  // It stays.
    }
  }
  if (!*taken && !(*taken = Take(op))) return false;
  bool ready = true;
  for (const steps::Access& access : profile_.accesses(op)) {
    Place& place = place_[access.buffer];
    if (place != Place::kComing) continue;
    if (ready_[access.buffer] <= now_) {
      place = Place::kHere;
    } else {
      ready = false;
    }
  }
  return ready;
}

bool PlanReplay::Take(uint32_t op) {
  const std::vector<steps::Access>& accesses = profile_.accesses(op);
  Bytes lacks = profile_.fresh(op);
  for (const steps::Access& access : accesses) {
    if (Missing(access)) lacks += profile_.size(access.buffer);
  }
  op_waits_ = !lacks.is_zero() && !Fits(lacks);
  if (op_waits_) return false;
  used_ += profile_.fresh(op);
  for (const steps::Access& access : accesses) {
    if (Missing(access)) CopyBack(access.buffer, now_);
    if (access.kind != steps::AccessKind::kRead) dirty_[access.buffer] = true;
    if (access.kind != steps::AccessKind::kNew) continue;
    Place& place = place_[access.buffer];
    if (place != Place::kNone) old_[access.buffer] = place;
    if (place != Place::kComing) place = Place::kHere;
  }
  return true;
}

bool PlanReplay::Missing(const steps::Access& access) const {
  return access.kind != steps::AccessKind::kNew &&
         place_[access.buffer] == Place::kAway;
}

void PlanReplay::Free(uint32_t buffer) {
  // What has been replaced goes first.
  Place& place = old_[buffer] != Place::kNone ? old_[buffer] : place_[buffer];
  if (place != Place::kAway && place != Place::kNone) {
    used_ -= profile_.size(buffer);
  }
  place = Place::kNone;
}

void PlanReplay::Post(uint32_t op) {
  if (op == 0) next_return_ = 0;
  while (next_return_ < returns_.size() && returns_[next_return_].at <= op) {
    const uint32_t buffer = returns_[next_return_++].buffer;
    if (place_[buffer] == Place::kQueued) place_[buffer] = Place::kHere;
    to_restore_.push_back(buffer);
  }
  RestoreNext(now_);
}

double PlanReplay::NextEvent() const {
  double next = kNever;
  for (const Leaving& leaving : leaving_) next = std::min(next, leaving.ends);
  for (double ends : coming_) next = std::min(next, ends);
  return next;
}

void PlanReplay::Advance(double until) {
  for (;;) {
    const double event = NextEvent();
    if (event == kNever || event > until) break;
    const auto left =
        std::find_if(leaving_.begin(), leaving_.end(),
                     [event](const Leaving& l) { return l.ends == event; });
    if (left != leaving_.end()) {
      const Leaving leaving = *left;
      leaving_.erase(left);
      HasLeft(leaving);
      EvictNext(event);
    } else {
      coming_.erase(std::find(coming_.begin(), coming_.end(), event));
    }
    now_ = std::max(now_, event);
    if (op_waits_) return;  // Whoever waits looks first.
    RestoreNext(event);
  }
  now_ = std::max(now_, until);
}

void PlanReplay::HasLeft(const Leaving& leaving) {
  Place& place = place_[leaving.buffer];
  if (place != Place::kLeaving || copy_[leaving.buffer] != leaving.copy) return;
  place = Place::kAway;
  dirty_[leaving.buffer] = false;
  used_ -= profile_.size(leaving.buffer);
}

void PlanReplay::EvictNext(double at) {
  while (leaving_.size() < static_cast<size_t>(bus_.moves) &&
         !to_evict_.empty()) {
    const uint32_t buffer = absences_[to_evict_.front()].buffer;
    to_evict_.pop_front();
    if (place_[buffer] != Place::kQueued) continue;
    place_[buffer] = Place::kLeaving;
    double copied = at;
    if (dirty_[buffer]) {
      copied = out_free_ = std::max(out_free_, at) +
                           CopySeconds(profile_.size(buffer), bus_.out);
    }
    leaving_.push_back({buffer, ++copy_[buffer], copied + latency_});
  }
}

void PlanReplay::RestoreNext(double at) {
  while (coming_.size() < static_cast<size_t>(bus_.moves) &&
         !to_restore_.empty() && !op_waits_) {
    const uint32_t buffer = to_restore_.front();
    if (place_[buffer] == Place::kAway) {
      if (!Fits(profile_.size(buffer))) return;
      coming_.push_back(CopyBack(buffer, at));
    }
    to_restore_.pop_front();
  }
}

double PlanReplay::CopyBack(uint32_t buffer, double at) {
  used_ += profile_.size(buffer);
  place_[buffer] = Place::kComing;
  in_free_ = std::max(in_free_, at + latency_) +
             CopySeconds(profile_.size(buffer), bus_.in);
  return ready_[buffer] = in_free_;
}

}  // namespace mets::core
