#include "tests/contract/cuda_backends.h"
#include "tests/contract/pool_driver_contract.h"

namespace mets {
namespace {

INSTANTIATE_TEST_SUITE_P(Gpu, PoolDriverContract,
                         ::testing::Values(CudaBackend()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mets
