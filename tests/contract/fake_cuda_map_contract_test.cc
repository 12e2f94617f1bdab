#include "tests/contract/cuda_backends.h"
#include "tests/contract/map_driver_contract.h"
#include "tests/contract/map_driver_stream_contract.h"

namespace mets {
namespace {

INSTANTIATE_TEST_SUITE_P(Fake, MapDriverContract,
                         ::testing::Values(FakeCudaBackend()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mets
