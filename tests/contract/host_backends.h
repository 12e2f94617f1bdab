// The host device and its decorators, as backends of the contract suites.
#ifndef METS_TESTS_CONTRACT_HOST_BACKENDS_H_
#define METS_TESTS_CONTRACT_HOST_BACKENDS_H_

#include <vector>

#include "tests/contract/backends.h"

namespace mets {

// Host; the same without moving page tables and huge pages; Slow(host);
// Faulty(host) without faults.
std::vector<Backend> HostBackends();

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_HOST_BACKENDS_H_
