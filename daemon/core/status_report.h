// BuildStatus: the state as people see it.
#ifndef METS_DAEMON_CORE_STATUS_REPORT_H_
#define METS_DAEMON_CORE_STATUS_REPORT_H_

#include "daemon/core/state.h"

namespace mets::core {

// A job is listed once for each device that it is attached to, holds memory of,
// or has counters of. free + cached + resident + moving + draining = pool on
// each device (unless orphans exceed it).
Status BuildStatus(const State& state);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STATUS_REPORT_H_
