// Accesses that no op announced, on host devices.
#ifndef METS_CLIENT_SRC_FAULT_HANDLER_H_
#define METS_CLIENT_SRC_FAULT_HANDLER_H_

#include "absl/status/status.h"
#include "client/src/device.h"

namespace mets::client {

// Serves SIGSEGV in [begin, end): the faulting thread waits while a thread of
// libmets asks `device` to bring the buffer back, and then goes on. Faults
// elsewhere, or in no live buffer, go to the handler that was there before. In
// a forked child a fault in the region ends the child with one line on stderr.
//
// The first call installs the handler and starts the thread; both stay until
// the process ends. `device` must live until StopServingFaultsOf.
absl::Status ServeFaultsOf(char* begin, char* end, Device* device);

// Faults there are foreign again. REQUIRES: nobody uses the device any more.
void StopServingFaultsOf(const Device* device);

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_FAULT_HANDLER_H_
