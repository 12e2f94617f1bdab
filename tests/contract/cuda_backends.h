// CUDA devices as backends of the contract suites.
#ifndef METS_TESTS_CONTRACT_CUDA_BACKENDS_H_
#define METS_TESTS_CONTRACT_CUDA_BACKENDS_H_

#include "tests/contract/backends.h"

namespace mets {

// The drivers over the fake functions: runs everywhere.
Backend FakeCudaBackend();

// The first GPU. `missing` says why not, where there is none.
Backend CudaBackend();

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_CUDA_BACKENDS_H_
