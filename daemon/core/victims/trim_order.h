// Orders to give cached memory back.
#ifndef METS_DAEMON_CORE_VICTIMS_TRIM_ORDER_H_
#define METS_DAEMON_CORE_VICTIMS_TRIM_ORDER_H_

#include "daemon/core/state.h"

namespace mets::core {

// Orders a session to give back `target` of what it has cached on a device, and
// to answer within the order timeout.
void OrderTrim(State& state, SessionId session, size_t device, Bytes target);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VICTIMS_TRIM_ORDER_H_
