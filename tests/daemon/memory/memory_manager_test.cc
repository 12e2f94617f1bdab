#include "daemon/memory/memory_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "common/device/host/host_pool_driver.h"

namespace mets::memory {
namespace {

// Keeps what is posted, in order.
class QueueSink : public core::InputSink {
 public:
  void Post(core::Input input) override {
    absl::MutexLock lock(&mutex_);
    inputs_.push_back(std::move(input));
  }
  template <typename T>
  T Take() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this] { return !inputs_.empty(); };
    mutex_.Await(absl::Condition(&some));
    T input = std::get<T>(inputs_.front());
    inputs_.pop_front();
    return input;
  }

 private:
  absl::Mutex mutex_;
  std::deque<core::Input> inputs_;
};

// Copies what it is given.
class CopyKeeper : public DescriptorKeeper {
 public:
  void Keep(ChunkId chunk, int fd) override {
    chunks[chunk] = UniqueFd(dup(fd));
  }
  void Keep(ExtentId extent, int fd) override {
    extents[extent] = UniqueFd(dup(fd));
  }
  void Drop(ChunkId chunk) override { chunks.erase(chunk); }
  void Drop(ExtentId extent) override { extents.erase(extent); }

  std::map<ChunkId, UniqueFd> chunks;
  std::map<ExtentId, UniqueFd> extents;
};

// Creates no extent before another is to be created as well.
class MeetingDriver : public HostPoolDriver {
 public:
  using HostPoolDriver::HostPoolDriver;

  absl::StatusOr<UniqueFd> CreateExtent(Bytes size) override {
    if (others_.DecrementCount()) met_.Notify();
    if (!met_.WaitForNotificationWithTimeout(absl::Seconds(10))) {
      return absl::DeadlineExceededError("alone");
    }
    return HostPoolDriver::CreateExtent(size);
  }

 private:
  absl::BlockingCounter others_{2};
  absl::Notification met_;
};

class MemoryManagerTest : public ::testing::Test {
 protected:
  MemoryManagerTest() { Make(nullptr); }

  void Make(DescriptorKeeper* keeper) {
    manager_ = nullptr;
    std::vector<ManagedDevice> devices;
    for (int id : {1, 2}) {
      devices.push_back({DeviceId(id), std::make_unique<HostPoolDriver>(
                                           HostPoolOptions{MiB(4)})});
    }
    manager_ =
        std::make_unique<MemoryManager>(std::move(devices), sink_, keeper);
  }

  QueueSink sink_;
  std::unique_ptr<MemoryManager> manager_;
};

TEST_F(MemoryManagerTest, CreatedChunkHasADescriptorOfItsSize) {
  manager_->Perform(core::CreateChunk{DeviceId(2), ChunkId(7), MiB(1)});
  const auto created = sink_.Take<core::ChunkCreated>();
  ASSERT_TRUE(created.status.ok()) << created.status;
  EXPECT_EQ(created.chunk, ChunkId(7));
  const absl::StatusOr<int> fd = manager_->ChunkDescriptor(ChunkId(7));
  ASSERT_TRUE(fd.ok());
  struct stat info;
  ASSERT_EQ(fstat(*fd, &info), 0);
  EXPECT_EQ(info.st_size, MiB(1).count());
  EXPECT_EQ(info.st_blocks * 512, MiB(1).count());
}

TEST_F(MemoryManagerTest, DestroyedChunkIsGoneAndItsBytesAreFree) {
  for (int id = 1; id <= 8; ++id) {
    manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(id), MiB(4)});
    ASSERT_TRUE(sink_.Take<core::ChunkCreated>().status.ok());
    manager_->Perform(core::DestroyChunk{DeviceId(1), ChunkId(id)});
    ASSERT_TRUE(sink_.Take<core::ChunkDestroyed>().status.ok());
    EXPECT_TRUE(
        absl::IsNotFound(manager_->ChunkDescriptor(ChunkId(id)).status()));
  }
}

TEST_F(MemoryManagerTest, WhatIsKeptIsTakenOver) {
  CopyKeeper keeper;
  Make(&keeper);
  manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(7), MiB(1)});
  manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(8), MiB(1)});
  ASSERT_TRUE(sink_.Take<core::ChunkCreated>().status.ok());
  ASSERT_TRUE(sink_.Take<core::ChunkCreated>().status.ok());
  manager_->Perform(core::CreateExtent{ExtentId(3), DomainId(1), MiB(2)});
  ASSERT_TRUE(sink_.Take<core::ExtentCreated>().status.ok());
  manager_->Perform(core::DestroyChunk{DeviceId(1), ChunkId(8)});
  ASSERT_TRUE(sink_.Take<core::ChunkDestroyed>().status.ok());
  EXPECT_EQ(keeper.chunks.count(ChunkId(8)), 0u);

  Make(&keeper);
  ASSERT_EQ(keeper.chunks.count(ChunkId(7)), 1u);
  const auto adopt = [&](Bytes size) {
    return manager_->Adopt(DeviceId(1), ChunkId(7), size,
                           UniqueFd(dup(keeper.chunks[ChunkId(7)].get())));
  };
  EXPECT_TRUE(absl::IsInvalidArgument(adopt(MiB(4))));
  EXPECT_TRUE(adopt(MiB(1)).ok());
  EXPECT_TRUE(manager_->ChunkDescriptor(ChunkId(7)).ok());
  EXPECT_TRUE(manager_
                  ->Adopt(ExtentId(3), MiB(2),
                          UniqueFd(dup(keeper.extents[ExtentId(3)].get())))
                  .ok());
  EXPECT_TRUE(manager_->ExtentDescriptor(ExtentId(3)).ok());
  // Of the device's memory: 3 of 4 MiB are left.
  manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(9), MiB(4)});
  EXPECT_FALSE(sink_.Take<core::ChunkCreated>().status.ok());
}

TEST_F(MemoryManagerTest, DriverErrorIsTheResultsStatus) {
  manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(1), MiB(4)});
  ASSERT_TRUE(sink_.Take<core::ChunkCreated>().status.ok());
  manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(2), MiB(4)});
  const auto second = sink_.Take<core::ChunkCreated>();
  EXPECT_TRUE(absl::IsResourceExhausted(second.status)) << second.status;
  EXPECT_FALSE(manager_->ChunkDescriptor(ChunkId(2)).ok());
}

TEST_F(MemoryManagerTest, ResultsComeInTheOrderOfTheActions) {
  for (int id = 1; id <= 20; ++id) {
    manager_->Perform(core::CreateChunk{DeviceId(1), ChunkId(id), KiB(64)});
  }
  for (int id = 1; id <= 20; ++id) {
    EXPECT_EQ(sink_.Take<core::ChunkCreated>().chunk, ChunkId(id));
  }
}

TEST_F(MemoryManagerTest, ExtentsAreCreatedSeveralAtATime) {
  std::vector<ManagedDevice> devices;
  devices.push_back({DeviceId(1), std::make_unique<MeetingDriver>(
                                      HostPoolOptions{MiB(4)})});
  MemoryManager manager(std::move(devices), sink_);
  manager.Perform(core::CreateExtent{ExtentId(1), DomainId(1), MiB(1)});
  manager.Perform(core::CreateExtent{ExtentId(2), DomainId(1), MiB(1)});
  EXPECT_TRUE(sink_.Take<core::ExtentCreated>().status.ok());
  EXPECT_TRUE(sink_.Take<core::ExtentCreated>().status.ok());
}

TEST_F(MemoryManagerTest, ExtentsComeAndGo) {
  manager_->Perform(core::CreateExtent{ExtentId(3), DomainId(1), MiB(8)});
  const auto created = sink_.Take<core::ExtentCreated>();
  ASSERT_TRUE(created.status.ok()) << created.status;
  const absl::StatusOr<int> fd = manager_->ExtentDescriptor(ExtentId(3));
  ASSERT_TRUE(fd.ok());
  struct stat info;
  ASSERT_EQ(fstat(*fd, &info), 0);
  EXPECT_EQ(info.st_size, MiB(8).count());
  manager_->Perform(core::DestroyExtent{ExtentId(3)});
  EXPECT_TRUE(sink_.Take<core::ExtentDestroyed>().status.ok());
  EXPECT_FALSE(manager_->ExtentDescriptor(ExtentId(3)).ok());
}

}  // namespace
}  // namespace mets::memory
