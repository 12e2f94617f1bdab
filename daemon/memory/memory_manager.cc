#include "daemon/memory/memory_manager.h"

#include <utility>
#include <variant>

namespace mets::memory {

MemoryManager::MemoryManager(std::vector<ManagedDevice> devices,
                             core::InputSink& sink)
    : sink_(sink), extent_worker_(std::make_unique<WorkQueue>()) {
  METS_CHECK(!devices.empty()) << "no devices";
  for (ManagedDevice& device : devices) {
    METS_CHECK(device.driver != nullptr) << "device " << device.id;
    devices_.push_back(
        {device.id, std::move(device.driver), std::make_unique<WorkQueue>()});
  }
}

MemoryManager::~MemoryManager() {
  extent_worker_.reset();
  for (Device& device : devices_) device.worker.reset();
  // What is left goes with the daemon; nobody waits for an answer.
  chunks_.Clear([](Device* device, UniqueFd fd) {
    device->driver->ReleaseChunk(std::move(fd)).IgnoreError();
  });
}

MemoryManager::Device& MemoryManager::Find(DeviceId id) {
  for (Device& device : devices_) {
    if (device.id == id) return device;
  }
  METS_CHECK(false) << "unknown device " << id;
  return devices_.front();
}

void MemoryManager::Perform(core::MemoryAction action) {
  if (const auto* create = std::get_if<core::CreateChunk>(&action)) {
    Device& device = Find(create->device);
    device.worker->Add([this, &device, a = *create] { Create(device, a); });
  } else if (const auto* destroy = std::get_if<core::DestroyChunk>(&action)) {
    Device& device = Find(destroy->device);
    device.worker->Add([this, &device, a = *destroy] { Destroy(device, a); });
  } else if (const auto* extent = std::get_if<core::CreateExtent>(&action)) {
    extent_worker_->Add([this, a = *extent] { Create(a); });
  } else {
    extent_worker_->Add(
        [this, a = std::get<core::DestroyExtent>(action)] { Destroy(a); });
  }
}

void MemoryManager::Create(Device& device, const core::CreateChunk& action) {
  absl::StatusOr<UniqueFd> fd = device.driver->CreateChunk(action.size);
  if (fd.ok()) chunks_.Insert(action.chunk, &device, *std::move(fd));
  sink_.Post(core::ChunkCreated{action.chunk, fd.status()});
}

void MemoryManager::Destroy(Device& device, const core::DestroyChunk& action) {
  UniqueFd fd = chunks_.Remove(action.chunk);
  absl::Status status = absl::NotFoundError("no such chunk");
  if (fd.ok()) status = device.driver->ReleaseChunk(std::move(fd));
  sink_.Post(core::ChunkDestroyed{action.chunk, status});
}

void MemoryManager::Create(const core::CreateExtent& action) {
  absl::StatusOr<UniqueFd> fd =
      devices_.front().driver->CreateExtent(action.size);
  if (fd.ok()) extents_.Insert(action.extent, nullptr, *std::move(fd));
  sink_.Post(core::ExtentCreated{action.extent, fd.status()});
}

void MemoryManager::Destroy(const core::DestroyExtent& action) {
  const bool known = extents_.Remove(action.extent).ok();
  sink_.Post(core::ExtentDestroyed{
      action.extent,
      known ? absl::OkStatus() : absl::NotFoundError("no such extent")});
}

absl::StatusOr<int> MemoryManager::ChunkDescriptor(ChunkId chunk) const {
  return chunks_.Find(chunk);
}

absl::StatusOr<int> MemoryManager::ExtentDescriptor(ExtentId extent) const {
  return extents_.Find(extent);
}

}  // namespace mets::memory
