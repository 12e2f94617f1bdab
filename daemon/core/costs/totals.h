// Sums of counters that processes report.
#ifndef METS_DAEMON_CORE_COSTS_TOTALS_H_
#define METS_DAEMON_CORE_COSTS_TOTALS_H_

#include "daemon/core/values.h"

namespace mets::core {

// Adds `from`'s counters to `to`'s; the larger peak stays.
void AddTotals(const Totals& from, Totals* to);
// Raises every counter of `to` to `from`'s; counters never go back.
void RaiseTotals(const Totals& from, Totals* to);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_TOTALS_H_
