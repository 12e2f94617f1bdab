// A device whose driver keeps mappings: chunks that are mapped together are
// taken together again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/src/device.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/host_map_driver.h"
#include "tests/client/fake_uplink.h"

namespace mets::client {
namespace {

using Handles = std::vector<ChunkHandle>;

// Notes what is mapped.
class KeepingDriver : public ForwardingMapDriver {
 public:
  using ForwardingMapDriver::ForwardingMapDriver;

  MapDriverInfo info() const override {
    MapDriverInfo info = ForwardingMapDriver::info();
    info.keeps_mappings = true;
    return info;
  }
  absl::Status Map(char* range, absl::Span<const ChunkHandle> chunks) override {
    mapped_.emplace_back(chunks.begin(), chunks.end());
    return ForwardingMapDriver::Map(range, chunks);
  }
  absl::StatusOr<Fence> CopyIn(char* range, absl::Span<const ChunkHandle> chunks,
                               absl::Span<const ExtentPiece> slot, Bytes size,
                               StreamHandle stream) override {
    mapped_.emplace_back(chunks.begin(), chunks.end());
    return ForwardingMapDriver::CopyIn(range, chunks, slot, size, stream);
  }
  // Since the last call.
  std::vector<Handles> TakeMapped() { return std::exchange(mapped_, {}); }

 private:
  std::vector<Handles> mapped_;
};

class DeviceKeptTest : public testing::Test {
 protected:
  // Two chunks.
  static constexpr Bytes kSize = MiB(4) + MiB(1);

  DeviceKeptTest() {
    auto host = HostMapDriver::Create(HostMapOptions{GiB(8)});
    METS_CHECK_OK(host);
    auto owned = std::make_unique<KeepingDriver>(*std::move(host));
    driver_ = owned.get();
    auto device =
        Device::Create(uplink_, std::move(owned),
                       {"host0", "host", MiB(64), Bytes(), absl::Seconds(10)});
    METS_CHECK_OK(device);
    device_ = *std::move(device);
  }

  void* Alloc(Bytes bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    return address;
  }
  void Evict(void* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    METS_CHECK_OK(device_->FindBuffer(address, &info));
    // As a plan does: the chunks stay with the process.
    const auto result =
        device_->Evict(info.buffer_id, uplink_.NewSlot(*device_, kSize), {});
    EXPECT_EQ(result.outcome, v1::BUFFER_OUTCOME_DONE);
  }
  void Use(void* address) {
    const mets_access access = {address, 0, METS_READ};
    Op* op = nullptr;
    METS_CHECK_OK(device_->BeginOp(&access, 1, 0, &op));
    device_->EndOp(op);
  }

  FakeUplink uplink_{MiB(64)};
  KeepingDriver* driver_;
  std::unique_ptr<Device> device_;
};

TEST_F(DeviceKeptTest, WhatComesBackTakesTheChunksThatItHad) {
  void* const first = Alloc(kSize);
  void* const second = Alloc(kSize);
  const std::vector<Handles> before = driver_->TakeMapped();
  Evict(first);
  Evict(second);
  Use(first);
  Use(second);
  EXPECT_EQ(driver_->TakeMapped(), before);
  Evict(first);
  Evict(second);
  Use(second);
  Use(first);
  EXPECT_THAT(driver_->TakeMapped(),
              testing::ElementsAre(before[1], before[0]));
}

TEST_F(DeviceKeptTest, WhatComesBackTakesOthersWhereItsOwnAreUsed) {
  void* const buffer = Alloc(kSize);
  const Handles before = driver_->TakeMapped()[0];
  Evict(buffer);
  device_->SetLimits(Bytes(), /*tight=*/true);
  void* const other = Alloc(MiB(1));
  EXPECT_THAT(driver_->TakeMapped(), testing::ElementsAre(Handles{before[1]}));
  Use(buffer);
  const Handles after = driver_->TakeMapped()[0];
  EXPECT_NE(after, before);
  device_->Free(other);
  Evict(buffer);
  Use(buffer);
  EXPECT_EQ(driver_->TakeMapped()[0], after);
}

TEST_F(DeviceKeptTest, NewRangesTakeChunksThatWereOneBefore) {
  void* const first = Alloc(kSize);
  void* const second = Alloc(kSize);
  const std::vector<Handles> before = driver_->TakeMapped();
  device_->Free(first);
  device_->Free(second);
  device_->SetLimits(Bytes(), /*tight=*/true);
  // Others use their chunks, one by one.
  std::vector<void*> parts;
  for (Bytes size : {MiB(4), MiB(4), MiB(1), MiB(1)}) {
    parts.push_back(Alloc(size));
  }
  EXPECT_EQ(driver_->TakeMapped().size(), 4u);
  for (int i : {0, 1, 3, 2}) device_->Free(parts[i]);
  Alloc(kSize);
  Alloc(kSize);
  EXPECT_THAT(driver_->TakeMapped(),
              testing::UnorderedElementsAre(before[0], before[1]));
}

TEST_F(DeviceKeptTest, TheSmallestRangeThatWillDoIsTakenApart) {
  void* const larger = Alloc(MiB(9));
  void* const smaller = Alloc(kSize);
  device_->Free(larger);
  device_->Free(smaller);
  device_->SetLimits(Bytes(), /*tight=*/true);
  const std::vector<Handles> before = driver_->TakeMapped();
  Alloc(MiB(4));
  EXPECT_THAT(driver_->TakeMapped(),
              testing::ElementsAre(Handles{before[1][0]}));
  Alloc(MiB(9));
  EXPECT_THAT(driver_->TakeMapped(), testing::IsEmpty());
}

TEST_F(DeviceKeptTest, FewChunksAreLookedForAlsoInNewerRanges) {
  std::vector<void*> ranges;
  for (int i = 0; i < 8; ++i) ranges.push_back(Alloc(MiB(1)));
  for (int i = 0; i < 2; ++i) ranges.push_back(Alloc(MiB(4)));
  for (void* range : ranges) device_->Free(range);
  device_->SetLimits(Bytes(), /*tight=*/true);
  driver_->TakeMapped();
  Alloc(MiB(8));
  EXPECT_THAT(driver_->TakeMapped(), testing::ElementsAre(testing::SizeIs(2)));
}

}  // namespace
}  // namespace mets::client
