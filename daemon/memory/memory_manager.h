// MemoryManager: carries out what the core decides about physical memory.
#ifndef METS_DAEMON_MEMORY_MEMORY_MANAGER_H_
#define METS_DAEMON_MEMORY_MEMORY_MANAGER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/device/pool_driver.h"
#include "daemon/core/ports.h"
#include "daemon/memory/descriptor_keeper.h"
#include "daemon/memory/descriptor_table.h"
#include "daemon/memory/work_queue.h"

namespace mets::memory {

// One device and the driver that makes its memory.
struct ManagedDevice {
  DeviceId id;
  std::unique_ptr<PoolDriver> driver;
};

// Creates and destroys chunks and extents, and keeps the daemon's descriptors
// of them. Each device has a worker thread, and the extents (made by the first
// device's driver) have several: a big extent delays no chunk, and most of its
// time goes into filling memory with zeros. Results are posted to the sink, in
// the order of the actions of one device or extent.
//
// Thread-safe. The sink and the keeper are borrowed and must outlive the
// manager. A driver's error goes to the core as the status of the result. The
// destructor waits for running calls and releases all memory that is left, but
// for what the keeper keeps.
class MemoryManager : public core::MemoryPort, public core::DescriptorSource {
 public:
  // REQUIRES: at least one device, drivers not null.
  // `keeper` may be null.
  MemoryManager(std::vector<ManagedDevice> devices, core::InputSink& sink,
                DescriptorKeeper* keeper = nullptr);
  ~MemoryManager() override;

  // Takes over what an earlier daemon made and the keeper has kept. Errors as
  // PoolDriver's. REQUIRES: no such chunk or extent exists.
  absl::Status Adopt(DeviceId device, ChunkId chunk, Bytes size, UniqueFd fd);
  absl::Status Adopt(ExtentId extent, Bytes size, UniqueFd fd);

  void Perform(core::MemoryAction action) override;

  absl::StatusOr<int> ChunkDescriptor(ChunkId chunk) const override;
  absl::StatusOr<int> ExtentDescriptor(ExtentId extent) const override;

 private:
  struct Device {
    DeviceId id;
    std::unique_ptr<PoolDriver> driver;
    std::unique_ptr<WorkQueue> worker;
  };

  static constexpr size_t kExtentWorkers = 4;

  Device& Find(DeviceId id);
  WorkQueue& WorkerOf(ExtentId extent);
  void Create(Device& device, const core::CreateChunk& action);
  void Destroy(Device& device, const core::DestroyChunk& action);
  void Create(const core::CreateExtent& action);
  void Destroy(const core::DestroyExtent& action);

  core::InputSink& sink_;
  DescriptorKeeper* const keeper_;
  std::vector<Device> devices_;
  DescriptorTable<ChunkId, Device*> chunks_;
  DescriptorTable<ExtentId, std::nullptr_t> extents_;
  std::vector<WorkQueue> extent_workers_;
};

}  // namespace mets::memory

#endif  // METS_DAEMON_MEMORY_MEMORY_MANAGER_H_
