#include "client/src/request_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/host_map_driver.h"
#include "tests/client/fake_uplink.h"
#include "tests/client/first_descriptor.h"

namespace mets::client {
namespace {

constexpr uint64_t kChunk = 1;

// Imports wait until the test lets them end.
class HeldUpImports : public ForwardingMapDriver {
 public:
  using ForwardingMapDriver::ForwardingMapDriver;

  absl::StatusOr<ChunkHandle> ImportChunk(UniqueFd fd, Bytes size) override {
    if (!begun.HasBeenNotified()) begun.Notify();
    may_end.WaitForNotification();
    return ForwardingMapDriver::ImportChunk(std::move(fd), size);
  }

  absl::Notification begun, may_end;
};

class RequestTableTest : public testing::Test {
 protected:
  RequestTableTest() {
    auto driver = HostMapDriver::Create(HostMapOptions{GiB(16)});
    METS_CHECK_OK(driver);
    auto held_up = std::make_unique<HeldUpImports>(*std::move(driver));
    imports_ = held_up.get();
    auto device = Device::Create(
        uplink_, std::move(held_up),
        DeviceOptions{"host0", "host", MiB(64), Bytes(), absl::Seconds(10)});
    METS_CHECK_OK(device);
    device_ = *std::move(device);
  }

  void DeliverChunk() {
    inbox_.Put(FirstDescriptor(ipc::FdKind::kChunk, kChunk, MiB(1)));
  }
  void AnswerRequest(uint64_t id) {
    v1::Granted granted;
    granted.set_request_id(id);
    v1::Chunk& chunk = *granted.add_chunks();
    chunk.set_chunk_id(kChunk);
    chunk.set_size_bytes(MiB(1).count());
    granted.add_range_chunks(1);
    granted.set_fd_seq(1);
    requests_.OnGranted(granted);
  }

  FakeUplink uplink_{MiB(64)};
  HeldUpImports* imports_;
  std::unique_ptr<Device> device_;
  DescriptorInbox inbox_;
  ChunkImporter importer_{inbox_};
  v1::Acquire asked_;  // The last one.
  RequestTable requests_{importer_, [this](v1::ClientMessage message) {
                           if (message.has_acquire()) {
                             asked_ = message.acquire();
                           }
                         }};
};

// A new daemon numbers its chunks from 1 again: what is imported of the old
// one's must not meet them.
TEST_F(RequestTableTest, NothingIsImportedOnceTheConnectionHasEnded) {
  requests_.OnOpen(1);
  std::thread asker([this] {
    EXPECT_TRUE(requests_
                    .Acquire(*device_, {MiB(1)},
                             SteadyNow() + absl::Seconds(20), Waiting())
                    .ok());
  });
  DeliverChunk();
  while (!imports_->begun.HasBeenNotified()) AnswerRequest(1);
  std::thread lets_end([this] {
    absl::SleepFor(absl::Milliseconds(20));
    imports_->may_end.Notify();
  });
  requests_.OnBroken();
  inbox_.Close();
  importer_.AwaitEnd();
  EXPECT_TRUE(imports_->may_end.HasBeenNotified());
  EXPECT_TRUE(device_->KnowsChunk(kChunk));

  device_->BeginEpoch(1);
  inbox_.Reset(/*new_epoch=*/true);
  DeliverChunk();
  requests_.OnOpen(2);
  AnswerRequest(2);
  asker.join();
  lets_end.join();
}

TEST_F(RequestTableTest, ARequestSaysThatItWantsTheFewestChunks) {
  requests_.OnOpen(1);
  for (bool fewest : {false, true}) {
    Waiting waiting;
    waiting.until = SteadyNow();
    waiting.fewest_chunks = fewest;
    requests_.Acquire(*device_, {MiB(1)}, SteadyNow(), waiting).IgnoreError();
    EXPECT_EQ(asked_.fewest_chunks(), fewest);
    EXPECT_EQ(asked_.range_bytes(0), uint64_t{1} << 20);
  }
}

}  // namespace
}  // namespace mets::client
