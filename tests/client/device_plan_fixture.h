// A device under a plan: a training whose activations leave and come back.
#ifndef METS_TESTS_CLIENT_DEVICE_PLAN_FIXTURE_H_
#define METS_TESTS_CLIENT_DEVICE_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/device.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/host_map_driver.h"
#include "tests/client/device_stats.h"
#include "tests/client/fake_uplink.h"

namespace mets::client {

// Copies out can be held up.
class HeldUpDriver : public ForwardingMapDriver {
 public:
  explicit HeldUpDriver(std::unique_ptr<MapDriver> driver,
                        bool keeps_mappings = false)
      : ForwardingMapDriver(std::move(driver)),
        keeps_mappings_(keeps_mappings) {}

  MapDriverInfo info() const override {
    MapDriverInfo info = ForwardingMapDriver::info();
    info.keeps_mappings = keeps_mappings_;
    return info;
  }
  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override {
    absl::MutexLock lock(&mutex_);
    ++copies_;
    const bool alone = std::exchange(hold_next_, false);
    mutex_.Await(absl::Condition(alone ? &released_ : &may_end_));
    absl::StatusOr<Fence> fence =
        ForwardingMapDriver::CopyOut(range, chunks, slot, size, stream);
    --copies_;
    return fence;
  }

  void set_may_end(bool may_end) {
    absl::MutexLock lock(&mutex_);
    may_end_ = may_end;
  }
  // The next one waits for Release; others do not.
  void HoldNext() {
    absl::MutexLock lock(&mutex_);
    hold_next_ = true;
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    released_ = true;
  }
  int copies() {
    absl::MutexLock lock(&mutex_);
    return copies_;
  }
  void AwaitCopy() {
    const auto some = [this] { return copies_ > 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&some));
  }

 private:
  const bool keeps_mappings_;
  absl::Mutex mutex_;
  int copies_ = 0;
  bool may_end_ = true;
  bool hold_next_ = false;
  bool released_ = false;
};

// Forward op i allocates activation i, backward op i uses it for the last time;
// both use weight i, and forward op i + 1 reads activation i too. Every byte is
// written, and looked at before it is used.
class DevicePlanTest : public testing::Test {
 protected:
  static constexpr int kLayers = 34;
  static constexpr int kOps = 2 * kLayers;
  static Bytes SizeOf(int layer) { return MiB(1) + KiB(64) * layer; }
  static int Backward(int layer) { return kOps - 1 - layer; }

  explicit DevicePlanTest(bool keeps_mappings = false) {
    auto driver = HostMapDriver::Create(HostMapOptions{GiB(16)});
    METS_CHECK_OK(driver);
    auto held_up =
        std::make_unique<HeldUpDriver>(*std::move(driver), keeps_mappings);
    driver_ = held_up.get();
    DeviceOptions options{"host0", "host", GiB(1), Bytes(), absl::Seconds(10)};
    options.chunk_classes = uplink_.chunk_classes();
    auto device =
        Device::Create(uplink_, std::move(held_up), std::move(options));
    METS_CHECK_OK(device);
    device_ = *std::move(device);
    for (int i = 0; i < kLayers; ++i) {
      weights_.push_back(Alloc(SizeOf(i)));
      std::memset(weights_[i], 0, SizeOf(i).count());
    }
    activations_.resize(kLayers);
    Learn();
  }

  char* TryAlloc(Bytes bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    return device_->Alloc(options, &address).ok() ? static_cast<char*>(address)
                                                  : nullptr;
  }
  char* Alloc(Bytes bytes) {
    char* address = TryAlloc(bytes);
    EXPECT_NE(address, nullptr);
    return address;
  }

  static bool Holds(const char* buffer, Bytes size, char value) {
    return buffer[0] == value &&
           std::memcmp(buffer, buffer + 1, size.count() - 1) == 0;
  }

  Op* Begin(std::vector<mets_access> accesses) {
    Op* op = nullptr;
    const absl::Status status =
        device_->BeginOp(accesses.data(), accesses.size(), 0, &op);
    METS_CHECK_OK(status);
    return op;
  }

  void Forward(int i) {
    std::vector<mets_access> accesses = {
        {weights_[i], 0, METS_READ},
        {nullptr, static_cast<uint64_t>(SizeOf(i).count()), METS_NEW}};
    if (i > 0) accesses.push_back({activations_[i - 1], 0, METS_READ});
    Op* op = Begin(std::move(accesses));
    EXPECT_TRUE(Holds(weights_[i], SizeOf(i), step_)) << "weight " << i;
    activations_[i] = Alloc(SizeOf(i));
    std::memset(activations_[i], step_ + i, SizeOf(i).count());
    device_->EndOp(op);
  }

  void BackwardOp(int i) {
    Op* op =
        Begin({{activations_[i], 0, METS_READ}, {weights_[i], 0, METS_WRITE}});
    EXPECT_TRUE(Holds(activations_[i], SizeOf(i), step_ + i))
        << "activation " << i;
    EXPECT_TRUE(Holds(weights_[i], SizeOf(i), step_)) << "weight " << i;
    std::memset(weights_[i], step_ + 1, SizeOf(i).count());
    device_->EndOp(op);
  }

  // `after` is called between each op and the frees behind it.
  void Step(const std::function<void(int op)>& after = [](int) {}) {
    for (int op = 0; op < kOps; ++op) {
      const int layer = op < kLayers ? op : kOps - 1 - op;
      if (op < kLayers) {
        Forward(layer);
      } else {
        BackwardOp(layer);
      }
      after(op);
      if (op < kLayers || layer == kept_) continue;
      device_->Free(activations_[layer]);
    }
    ++step_;
  }

  // The plan moves a layer's activation in time.
  void StepWithAbsence(int layer, int ahead) {
    Step([&](int op) {
      if (op == layer + 1) AwaitResident(activations_[layer], false);
      if (op == Backward(layer) - ahead) {
        AwaitResident(activations_[layer], true);
      }
    });
  }

  // Until the device has told what the step does.
  void Learn() {
    for (int i = 0; i < 20 && program_.ops_size() == 0; ++i) {
      Step();
      device_->ReportSteps();
      for (const v1::ClientMessage& message : uplink_.TakeSent()) {
        if (message.has_step_program()) program_ = message.step_program();
      }
    }
    METS_CHECK(program_.ops_size() == kOps && program_.last());
    plan_.set_device("host0");
    plan_.set_step_signature(program_.step_signature());
    // Step began with the first forward op.
    METS_CHECK(program_.persistent(program_.ops(0).accesses(0) / 4));
    METS_CHECK(program_.buffer_bytes(program_.ops(0).accesses(0) / 4) ==
               static_cast<uint64_t>(SizeOf(0).count()));
  }

  uint32_t LogicalOf(int layer, bool persistent) {
    for (int b = 0; b < program_.buffer_bytes_size(); ++b) {
      if (program_.persistent(b) == persistent &&
          program_.buffer_bytes(b) ==
              static_cast<uint64_t>(SizeOf(layer).count())) {
        return b;
      }
    }
    METS_CHECK(false) << "layer " << layer;
    return 0;
  }

  // Activation `layer` leaves after the forward op that reads it, and comes
  // back `ahead` ops before the backward op.
  void PlanActivation(int layer, int ahead) {
    AddAbsence(LogicalOf(layer, false), layer, layer + 1,
               Backward(layer) - ahead, Backward(layer));
  }
  void AddAbsence(uint32_t logical, int layer, int evict_after, int restore_at,
                  int use) {
    v1::PlanAbsence* absence = plan_.add_absences();
    absence->set_buffer(logical);
    absence->set_evict_after(evict_after);
    absence->set_restore_at(restore_at);
    absence->set_use(use);
    absence->set_returns(true);
    v1::PlanSlot* slot = plan_.add_slots();
    slot->set_buffer(logical);
    *slot->mutable_slot() = uplink_.NewSlot(*device_, SizeOf(layer));
  }
  void Follow() {
    const absl::Status status = device_->FollowPlan(plan_);
    ASSERT_TRUE(status.ok()) << status;
  }

  mets_buffer_info Info(char* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    EXPECT_TRUE(device_->FindBuffer(address, &info).ok());
    return info;
  }
  bool Resident(char* address) { return Info(address).resident != 0; }
  // What a plan's threads do soon.
  void AwaitResident(char* address, bool resident) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (Resident(address) != resident && absl::Now() < deadline) {
      absl::SleepFor(absl::Microseconds(100));
    }
    EXPECT_EQ(Resident(address), resident);
  }
  mets_stats_t Stats() { return StatsOf(*device_); }
  v1::BufferOutcome EvictByOrder(char* address, const v1::Slot& slot) {
    v1::OrderDone done;
    v1::BufferResult* result = done.add_results();
    result->set_buffer_id(Info(address).buffer_id);
    result->set_outcome(device_->Evict(result->buffer_id(), slot, 1).outcome);
    result->set_slot_id(slot.slot_id());
    const v1::BufferOutcome outcome = result->outcome();
    device_->AnswerEvictions(std::move(done));
    return outcome;
  }

  FakeUplink uplink_{GiB(1)};
  HeldUpDriver* driver_;
  std::unique_ptr<Device> device_;
  std::vector<char*> weights_, activations_;
  char step_ = 0;
  int kept_ = -1;  // A layer whose activations are not freed.
  v1::StepProgram program_;
  v1::Plan plan_;
};

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_DEVICE_PLAN_FIXTURE_H_
