#include "tests/contract/host_backends.h"
#include "tests/contract/pool_driver_contract.h"

namespace mets {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, PoolDriverContract,
                         ::testing::ValuesIn(HostBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mets
