#include "daemon/memory/memory_manager.h"

#include <utility>
#include <variant>

#include "common/base/status_macros.h"

namespace mets::memory {

MemoryManager::MemoryManager(std::vector<ManagedDevice> devices,
                             core::InputSink& sink, DescriptorKeeper* keeper)
    : sink_(sink),
      keeper_(keeper),
      extent_workers_(kExtentWorkers) {
  METS_CHECK(!devices.empty()) << "no devices";
  for (ManagedDevice& device : devices) {
    METS_CHECK(device.driver != nullptr) << "device " << device.id;
    devices_.push_back(
        {device.id, std::move(device.driver), std::make_unique<WorkQueue>()});
  }
}

MemoryManager::~MemoryManager() {
  extent_workers_.clear();
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

WorkQueue& MemoryManager::WorkerOf(ExtentId extent) {
  return extent_workers_[extent.value() % kExtentWorkers];
}

void MemoryManager::Perform(core::MemoryAction action) {
  if (const auto* create = std::get_if<core::CreateChunk>(&action)) {
    Device& device = Find(create->device);
    device.worker->Add([this, &device, a = *create] { Create(device, a); });
  } else if (const auto* destroy = std::get_if<core::DestroyChunk>(&action)) {
    Device& device = Find(destroy->device);
    device.worker->Add([this, &device, a = *destroy] { Destroy(device, a); });
  } else if (const auto* extent = std::get_if<core::CreateExtent>(&action)) {
    WorkerOf(extent->extent).Add([this, a = *extent] { Create(a); });
  } else {
    const auto& a = std::get<core::DestroyExtent>(action);
    WorkerOf(a.extent).Add([this, a] { Destroy(a); });
  }
}

void MemoryManager::Create(Device& device, const core::CreateChunk& action) {
  absl::StatusOr<UniqueFd> fd = device.driver->CreateChunk(action.size);
  if (fd.ok()) {
    if (keeper_ != nullptr) keeper_->Keep(action.chunk, fd->get());
    chunks_.Insert(action.chunk, &device, *std::move(fd));
  }
  sink_.Post(core::ChunkCreated{action.chunk, fd.status()});
}

void MemoryManager::Destroy(Device& device, const core::DestroyChunk& action) {
  if (keeper_ != nullptr) keeper_->Drop(action.chunk);
  UniqueFd fd = chunks_.Remove(action.chunk);
  absl::Status status = absl::NotFoundError("no such chunk");
  if (fd.ok()) status = device.driver->ReleaseChunk(std::move(fd));
  sink_.Post(core::ChunkDestroyed{action.chunk, status});
}

void MemoryManager::Create(const core::CreateExtent& action) {
  absl::StatusOr<UniqueFd> fd =
      devices_.front().driver->CreateExtent(action.size);
  if (fd.ok()) {
    if (keeper_ != nullptr) keeper_->Keep(action.extent, fd->get());
    extents_.Insert(action.extent, nullptr, *std::move(fd));
  }
  sink_.Post(core::ExtentCreated{action.extent, fd.status()});
}

void MemoryManager::Destroy(const core::DestroyExtent& action) {
  if (keeper_ != nullptr) keeper_->Drop(action.extent);
  const bool known = extents_.Remove(action.extent).ok();
  sink_.Post(core::ExtentDestroyed{
      action.extent,
      known ? absl::OkStatus() : absl::NotFoundError("no such extent")});
}

absl::Status MemoryManager::Adopt(DeviceId id, ChunkId chunk, Bytes size,
                                  UniqueFd fd) {
  Device& device = Find(id);
  METS_ASSIGN_OR_RETURN(fd, device.driver->AdoptChunk(std::move(fd), size));
  chunks_.Insert(chunk, &device, std::move(fd));
  return absl::OkStatus();
}

absl::Status MemoryManager::Adopt(ExtentId extent, Bytes size, UniqueFd fd) {
  METS_ASSIGN_OR_RETURN(
      fd, devices_.front().driver->AdoptExtent(std::move(fd), size));
  extents_.Insert(extent, nullptr, std::move(fd));
  return absl::OkStatus();
}

absl::StatusOr<int> MemoryManager::ChunkDescriptor(ChunkId chunk) const {
  return chunks_.Find(chunk);
}

absl::StatusOr<int> MemoryManager::ExtentDescriptor(ExtentId extent) const {
  return extents_.Find(extent);
}

}  // namespace mets::memory
