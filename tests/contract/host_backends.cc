#include "tests/contract/host_backends.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/device/faulty_driver.h"
#include "common/device/host/host_map_driver.h"
#include "common/device/host/host_pool_driver.h"
#include "common/device/slow_driver.h"

namespace mets {
namespace {

std::unique_ptr<PoolDriver> MakePool(Bytes total, bool huge_pages) {
  HostPoolOptions options;
  options.total = total;
  options.huge_pages = huge_pages;
  return std::make_unique<HostPoolDriver>(options);
}

std::unique_ptr<MapDriver> MakeMap(bool move_page_tables) {
  HostMapOptions options;
  options.move_page_tables = move_page_tables;
  absl::StatusOr<std::unique_ptr<HostMapDriver>> map =
      HostMapDriver::Create(options);
  METS_CHECK_OK(map);
  return *std::move(map);
}

Backend Host(std::string name, bool modern) {
  Backend backend = HostMemoryBackend(std::move(name));
  backend.make_pool = [modern](Bytes total) { return MakePool(total, modern); };
  backend.make_map = [modern] { return MakeMap(modern); };
  return backend;
}

}  // namespace

std::vector<Backend> HostBackends() {
  Backend slow = Host("Slow", true);
  slow.make_map = [] {
    return std::make_unique<SlowMapDriver>(
        MakeMap(true), BusSpeed{GiB(64), absl::Microseconds(50)});
  };
  Backend faulty = Host("Faulty", true);
  // A plan without faults, alive as long as the backend's copies.
  auto plan = std::make_shared<FaultPlan>();
  faulty.make_pool = [plan](Bytes total) {
    return std::make_unique<FaultyPoolDriver>(MakePool(total, true), *plan);
  };
  faulty.make_map = [plan] {
    return std::make_unique<FaultyMapDriver>(MakeMap(true), *plan);
  };
  return {Host("Host", true), Host("HostOnAnOldKernel", false), std::move(slow),
          std::move(faulty)};
}

}  // namespace mets
