#include "daemon/core/planning/plan_search.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/core/planning/plan_timing.h"

namespace mets::core {
namespace {

constexpr uint64_t kMostOps = 1 << 17;  // Of all estimates together.
// Shorter by less is no improvement.
constexpr double kEnough = 0.9995;

class Search {
 public:
  Search(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
         std::vector<steps::Absence>* absences, double* seconds)
      : profile_(profile),
        budget_(budget),
        bus_(bus),
        best_(*absences),
        best_seconds_(*seconds),
        tries_(kMostOps / std::max<uint32_t>(profile.ops(), 1)) {}

  void Run() {
    for (bool improved = true; improved && tries_ > 0;) {
      improved = TryWithout();
      improved |= TryWith();
      improved |= TryPlaces();
    }
  }

  std::vector<steps::Absence> Take() { return std::move(best_); }
  double seconds() const { return best_seconds_; }

 private:
  bool Adopt(std::vector<steps::Absence> absences) {
    if (tries_ == 0) return false;
    --tries_;
    const double seconds = EstimateDuration(profile_, budget_, bus_, absences);
    if (!(seconds < best_seconds_ * kEnough)) return false;
    best_ = std::move(absences);
    best_seconds_ = seconds;
    return true;
  }

  bool AdoptTimed(std::vector<steps::Absence> absences) {
    SortAbsences(profile_, &absences);
    ChooseTimes(profile_, budget_, bus_, &absences);
    return Adopt(std::move(absences));
  }

  bool TryWithout() {
    bool improved = false;
    for (size_t i = 0; i < best_.size() && tries_ > 0; ++i) {
      if (profile_.buffer(best_[i].buffer).uses.empty()) continue;
      std::vector<steps::Absence> fewer = best_;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      if (AdoptTimed(std::move(fewer))) {
        improved = true;
        --i;
      }
    }
    return improved;
  }

  bool TryWith() {
    bool improved = false;
    for (const steps::Absence& absence : AllAbsences(profile_)) {
      if (tries_ == 0) break;
      const bool known = std::any_of(
          best_.begin(), best_.end(), [&](const steps::Absence& other) {
            return other.buffer == absence.buffer &&
                   other.evict_after == absence.evict_after;
          });
      if (known) continue;
      std::vector<steps::Absence> more = best_;
      more.push_back(absence);
      improved |= AdoptTimed(std::move(more));
    }
    return improved;
  }

  bool TryPlaces() {
    bool improved = false;
    const uint32_t n = profile_.ops();
    for (size_t i = 0; i < best_.size(); ++i) {
      if (!best_[i].returns) continue;
      for (uint32_t step : {n - 1, n - 4, 1u, 4u}) {
        while (tries_ > 0) {
          std::vector<steps::Absence> other = best_;
          uint32_t& at = other[i].restore_at;
          at = (at + step) % n;
          if (!Within(other[i]) || !Adopt(std::move(other))) break;
          improved = true;
        }
      }
    }
    return improved;
  }

  // Whether it comes back behind its leaving, and not behind its use.
  bool Within(const steps::Absence& absence) const {
    const uint32_t n = profile_.ops();
    const auto since = [&](uint32_t op) {
      return (op + n - absence.evict_after - 1) % n;
    };
    return since(absence.restore_at) <= since(absence.use);
  }

  const StepProfile& profile_;
  const Bytes budget_;
  const BusSpeed bus_;
  std::vector<steps::Absence> best_;
  double best_seconds_;
  uint64_t tries_;
};

}  // namespace

void ImprovePlan(const StepProfile& profile, Bytes budget, const BusSpeed& bus,
                 std::vector<steps::Absence>* absences, double* seconds) {
  Search search(profile, budget, bus, absences, seconds);
  search.Run();
  *absences = search.Take();
  *seconds = search.seconds();
}

}  // namespace mets::core
