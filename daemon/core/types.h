// The core's vocabulary: what goes in (inputs) and what comes out (actions).
//
// Plain values; no I/O, no clock, no threads. The transport turns messages into
// inputs and actions into messages; daemon/memory carries out memory actions.
// What a client says is not trusted: the core checks every value of it.
#ifndef METS_DAEMON_CORE_TYPES_H_
#define METS_DAEMON_CORE_TYPES_H_

#include "daemon/core/actions.h"
#include "daemon/core/inputs.h"
#include "daemon/core/status.h"
#include "daemon/core/values.h"

#endif  // METS_DAEMON_CORE_TYPES_H_
