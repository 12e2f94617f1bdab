// Ranges that are unmapped while other threads still have to do with them.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "tests/client/device_plan_fixture.h"

namespace mets::client {
namespace {

// Notices an Unmap while a copy out is under way.
class UnmapWatch : public HeldUpDriver {
 public:
  using HeldUpDriver::HeldUpDriver;

  absl::Status Unmap(char* range,
                     absl::Span<const ChunkHandle> chunks) override {
    if (copies() > 0) unmapped_in_copy_ = true;
    return HeldUpDriver::Unmap(range, chunks);
  }
  bool unmapped_in_copy() const { return unmapped_in_copy_; }

 private:
  std::atomic<bool> unmapped_in_copy_{false};
};

TEST(DeviceDismantleTest, ARangeIsNotUnmappedWhileItIsCopiedOut) {
  FakeUplink uplink(MiB(64));
  auto host = HostMapDriver::Create(HostMapOptions{GiB(8)});
  METS_CHECK_OK(host);
  auto owned = std::make_unique<UnmapWatch>(*std::move(host));
  UnmapWatch& driver = *owned;
  auto device =
      Device::Create(uplink, std::move(owned),
                     {"host0", "host", MiB(64), Bytes(), absl::Seconds(10)});
  METS_CHECK_OK(device);
  mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
  options.bytes = MiB(2).count();
  void* a = nullptr;
  METS_CHECK_OK((*device)->Alloc(options, &a));
  mets_buffer_info info = METS_BUFFER_INFO_INIT;
  METS_CHECK_OK((*device)->FindBuffer(a, &info));

  const v1::Slot slot = uplink.NewSlot(**device, MiB(2));
  driver.set_may_end(false);
  v1::BufferOutcome outcome = v1::BUFFER_OUTCOME_DONE;
  std::thread evictor(
      [&] { outcome = (*device)->Evict(info.buffer_id, slot, 1).outcome; });
  driver.AwaitCopy();
  // An op brings the buffer back; then it is freed, and its range given back.
  const mets_access access = {a, 0, METS_READ};
  Op* op = nullptr;
  METS_CHECK_OK((*device)->BeginOp(&access, 1, 0, &op));
  (*device)->EndOp(op);
  (*device)->Free(a);
  std::atomic<bool> trimmed{false};
  std::thread trimmer([&] {
    (*device)->Trim(MiB(64), 2);
    trimmed = true;
  });
  // Time for a trim that does not wait.
  const absl::Time end = absl::Now() + absl::Milliseconds(50);
  while (!trimmed && absl::Now() < end) std::this_thread::yield();
  driver.set_may_end(true);
  evictor.join();
  trimmer.join();
  EXPECT_FALSE(driver.unmapped_in_copy());
  EXPECT_EQ(outcome, v1::BUFFER_OUTCOME_SKIPPED);
  EXPECT_TRUE(uplink.used().is_zero());
}

}  // namespace
}  // namespace mets::client
