#include "daemon/core/costs/totals.h"

#include <algorithm>

namespace mets::core {

void AddTotals(const Totals& from, Totals* to) {
  to->evicted += from.evicted;
  to->restored += from.restored;
  to->evictions += from.evictions;
  to->restores += from.restores;
  to->unobserved_accesses += from.unobserved_accesses;
  to->clean_evictions += from.clean_evictions;
  to->restore_stall += from.restore_stall;
  to->steps += from.steps;
  to->step_time += from.step_time;
  to->step_wait += from.step_wait;
  to->peak_live = std::max(to->peak_live, from.peak_live);
  to->peak_resident = std::max(to->peak_resident, from.peak_resident);
}

void RaiseTotals(const Totals& from, Totals* to) {
  const auto raise = [](const auto& value, auto* total) {
    *total = std::max(*total, value);
  };
  raise(from.evicted, &to->evicted);
  raise(from.restored, &to->restored);
  raise(from.evictions, &to->evictions);
  raise(from.restores, &to->restores);
  raise(from.unobserved_accesses, &to->unobserved_accesses);
  raise(from.clean_evictions, &to->clean_evictions);
  raise(from.restore_stall, &to->restore_stall);
  raise(from.steps, &to->steps);
  raise(from.step_time, &to->step_time);
  raise(from.step_wait, &to->step_wait);
  raise(from.peak_live, &to->peak_live);
  raise(from.peak_resident, &to->peak_resident);
}

}  // namespace mets::core
