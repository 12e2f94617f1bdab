#include "daemon/core/planning/absence_chooser.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace mets::core {
namespace {

constexpr int kMostPasses = 6;
constexpr uint32_t kNoUse = UINT32_MAX;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

// Goes through the step again and again, with a budget.
class Sweep {
 public:
  Sweep(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
        const VictimPolicy& policy)
      : profile_(profile),
        budget_(budget),
        bus_(bus),
        policy_(policy),
        excess_(profile, budget),
        buffers_(profile.program().buffers.size()) {
    for (uint32_t b = 0; b < buffers_.size(); ++b) {
      const std::vector<Use>& uses = profile.buffer(b).uses;
      // What no op uses is away for good.
      if (!profile.program().buffers[b].persistent || uses.empty()) continue;
      buffers_[b].resident = true;
      buffers_[b].last_op = uses.back().op;
      resident_ += profile.size(b);
    }
  }

  std::vector<steps::Absence> Run() {
    std::vector<bool> before, after = Resident();
    for (int pass = 0; pass < kMostPasses && before != after; ++pass) {
      before = std::move(after);
      absences_.clear();
      for (uint32_t op = 0; op < profile_.ops(); ++op) Visit(op);
      base_ += profile_.duration();
      after = Resident();
    }
    AddUnused();
    return std::move(absences_);
  }

 private:
  struct State {
    bool resident = false;
    bool twice = false;  // What replaces it lives beside it.
    bool dirty = true;
    size_t next = 0;       // Index of its next use.
    uint32_t last_op = 0;  // Of its last use.
  };
  struct Candidate {
    double score;
    uint32_t buffer;
  };

  std::vector<bool> Resident() const {
    std::vector<bool> resident;
    for (const State& state : buffers_) resident.push_back(state.resident);
    return resident;
  }

  void Visit(uint32_t op) {
    for (const steps::Access& access : profile_.accesses(op)) {
      Touch(access, op);
    }
    if (resident_ > budget_) MakeRoom(op);
    for (uint32_t b : profile_.program().ops[op].frees) {
      if (profile_.frees(b)) Free(b);
    }
  }

  void Free(uint32_t b) {
    State& state = buffers_[b];
    if (state.resident) resident_ -= profile_.size(b);
    state.resident = std::exchange(state.twice, false);
    if (!profile_.program().buffers[b].persistent) state.next = 0;
  }

  void Touch(const steps::Access& access, uint32_t op) {
    State& state = buffers_[access.buffer];
    if (state.resident && access.kind == steps::AccessKind::kNew) {
      state.twice = true;
      resident_ += profile_.size(access.buffer);
    } else if (!state.resident) {
      state.resident = true;
      state.dirty = access.kind == steps::AccessKind::kNew;
      resident_ += profile_.size(access.buffer);
    }
    if (access.kind != steps::AccessKind::kRead) state.dirty = true;
    state.last_op = op;
    const std::vector<Use>& uses = profile_.buffer(access.buffer).uses;
    while (state.next < uses.size() && uses[state.next].op <= op) ++state.next;
    if (state.next == uses.size() &&
        profile_.program().buffers[access.buffer].persistent) {
      state.next = 0;
    }
  }

  // The op that uses it next; kNoUse when it is freed without.
  uint32_t NextOp(uint32_t b) const {
    const std::vector<Use>& uses = profile_.buffer(b).uses;
    const size_t next = buffers_[b].next;
    return next < uses.size() && !uses[next].fresh ? uses[next].op : kNoUse;
  }

  VictimFacts Facts(uint32_t b, uint32_t op) const {
    const State& state = buffers_[b];
    VictimFacts facts;
    facts.size = profile_.size(b);
    const double bytes = static_cast<double>(facts.size.count());
    double last = profile_.end(state.last_op);
    if (state.last_op > op) last -= profile_.duration();
    uint32_t next = NextOp(b);
    double until;
    if (next == kNoUse) {
      next = profile_.buffer(b).free_after;
      until = profile_.end(next);
    } else {
      until = profile_.start(next);
      if (next <= op) until += profile_.duration();
    }
    facts.last_use = At(base_ + last);
    facts.next_use = At(base_ + until);
    facts.clean = !state.dirty;
    facts.copy_time =
        absl::Seconds((state.dirty ? bytes / bus_.out : 0) + bytes / bus_.in);
    facts.excess_area = excess_.Between(state.last_op, next);
    return facts;
  }

  bool Touches(uint32_t op, uint32_t b) const {
    return buffers_[b].last_op == op;
  }

  void MakeRoom(uint32_t op) {
    const absl::Time now = At(base_ + profile_.start(op));
    std::vector<Candidate> candidates;
    for (uint32_t b = 0; b < buffers_.size(); ++b) {
      if (!buffers_[b].resident || buffers_[b].twice || Touches(op, b)) {
        continue;
      }
      candidates.push_back({policy_.Score(now, Facts(b, op)), b});
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) {
                return std::make_pair(-a.score, a.buffer) <
                       std::make_pair(-b.score, b.buffer);
              });
    for (const Candidate& candidate : candidates) {
      if (resident_ <= budget_) break;
      Leave(candidate.buffer);
    }
  }

  void Leave(uint32_t b) {
    State& state = buffers_[b];
    steps::Absence absence;
    absence.buffer = b;
    absence.evict_after = state.last_op;
    absence.clean = !state.dirty;
    absence.use = NextOp(b);
    if (absence.use == kNoUse) {
      absence.use = profile_.buffer(b).free_after;
      absence.returns = false;
    }
    absence.restore_at = absence.use;
    absences_.push_back(absence);
    state.resident = false;
    resident_ -= profile_.size(b);
  }

  void AddUnused() {
    for (uint32_t b = 0; b < buffers_.size(); ++b) {
      if (!profile_.buffer(b).uses.empty()) continue;
      steps::Absence absence;
      absence.buffer = b;
      absence.returns = false;
      absences_.push_back(absence);
    }
  }

  const StepProfile& profile_;
  const Bytes budget_;
  const BusSpeed bus_;
  const VictimPolicy& policy_;
  const StepProfile::Excess excess_;
  std::vector<State> buffers_;
  std::vector<steps::Absence> absences_;
  Bytes resident_;
  double base_ = 0;
};

// Calls `visit` with each op during which the buffer is away.
template <typename Visit>
void ForAway(const StepProfile& profile, const steps::Absence& absence,
             Visit visit) {
  const uint32_t n = profile.ops();
  if (!absence.returns && profile.buffer(absence.buffer).uses.empty()) {
    for (uint32_t op = 0; op < n; ++op) visit(op);
    return;
  }
  const uint32_t last = absence.returns ? absence.restore_at : absence.use + 1;
  for (uint32_t op = absence.evict_after + 1;; ++op) {
    if (op >= n) {
      if (last > absence.evict_after) break;
      op = 0;
    }
    if (op == last) break;
    visit(op);
  }
}

void DropNeedless(const StepProfile& profile, Bytes budget,
                  std::vector<steps::Absence>* absences) {
  std::vector<Bytes> resident = ResidentBytes(profile, *absences);
  std::stable_sort(absences->begin(), absences->end(),
                   [&](const steps::Absence& a, const steps::Absence& b) {
                     return profile.size(a.buffer) > profile.size(b.buffer);
                   });
  std::vector<steps::Absence> kept;
  for (const steps::Absence& absence : *absences) {
    const Bytes size = profile.size(absence.buffer);
    bool needed = false;
    ForAway(profile, absence,
            [&](uint32_t op) { needed |= resident[op] + size > budget; });
    if (needed) {
      kept.push_back(absence);
    } else {
      ForAway(profile, absence, [&](uint32_t op) { resident[op] += size; });
    }
  }
  *absences = std::move(kept);
}

// A buffer is clean when nothing has written it since it came back.
void SetClean(const StepProfile& profile,
              std::vector<steps::Absence>* absences) {
  std::map<uint32_t, std::vector<steps::Absence*>> of_buffer;
  for (steps::Absence& absence : *absences) {
    of_buffer[absence.buffer].push_back(&absence);
  }
  for (auto& [b, list] : of_buffer) {
    std::sort(list.begin(), list.end(),
              [](auto* x, auto* y) { return x->evict_after < y->evict_after; });
    const bool persistent = profile.program().buffers[b].persistent;
    for (size_t i = 0; i < list.size(); ++i) {
      const steps::Absence& before = *list[i > 0 ? i - 1 : list.size() - 1];
      const uint32_t from = before.use, to = list[i]->evict_after;
      list[i]->clean = i > 0 || persistent;
      for (const Use& use : profile.buffer(b).uses) {
        const bool between = from <= to ? use.op >= from && use.op <= to
                                        : use.op >= from || use.op <= to;
        if (between && use.writes) list[i]->clean = false;
      }
    }
  }
}

}  // namespace

std::vector<Bytes> ResidentBytes(const StepProfile& profile,
                                 const std::vector<steps::Absence>& absences) {
  std::vector<Bytes> resident;
  for (uint32_t op = 0; op < profile.ops(); ++op) {
    resident.push_back(profile.live(op));
  }
  for (const steps::Absence& absence : absences) {
    ForAway(profile, absence,
            [&](uint32_t op) { resident[op] -= profile.size(absence.buffer); });
  }
  return resident;
}

std::vector<steps::Absence> ChooseAbsences(const StepProfile& profile,
                                           Bytes budget, const BusSpeed& bus,
                                           const VictimPolicy& policy) {
  if (profile.peak() <= budget) return {};
  std::vector<steps::Absence> absences =
      Sweep(profile, budget, bus, policy).Run();
  DropNeedless(profile, budget, &absences);
  SortAbsences(profile, &absences);
  return absences;
}

void SortAbsences(const StepProfile& profile,
                  std::vector<steps::Absence>* absences) {
  SetClean(profile, absences);
  std::sort(absences->begin(), absences->end(),
            [](const steps::Absence& a, const steps::Absence& b) {
              return std::make_pair(a.use, a.buffer) <
                     std::make_pair(b.use, b.buffer);
            });
}

std::vector<steps::Absence> AllAbsences(const StepProfile& profile) {
  std::vector<steps::Absence> all;
  for (uint32_t b = 0; b < profile.program().buffers.size(); ++b) {
    const std::vector<Use>& uses = profile.buffer(b).uses;
    const bool persistent = profile.program().buffers[b].persistent;
    for (size_t i = 0; i < uses.size(); ++i) {
      const bool last = i + 1 == uses.size();
      if (last && !persistent) break;
      const Use& next = uses[last ? 0 : i + 1];
      if (next.fresh) continue;
      steps::Absence absence;
      absence.buffer = b;
      absence.evict_after = uses[i].op;
      absence.use = absence.restore_at = next.op;
      if (absence.use != absence.evict_after) all.push_back(absence);
    }
  }
  return all;
}

}  // namespace mets::core
