#include "tests/contract/cuda_backends.h"
#include "tests/contract/pool_driver_contract.h"

namespace mets {
namespace {

INSTANTIATE_TEST_SUITE_P(Fake, PoolDriverContract,
                         ::testing::Values(FakeCudaBackend()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mets
