// A device under a plan: a training whose activations leave and come back.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/src/device.h"
#include "client/src/order_worker.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/host_map_driver.h"
#include "tests/client/fake_uplink.h"

namespace mets::client {
namespace {

// Copies out can be held up.
class HeldUpDriver : public ForwardingMapDriver {
 public:
  using ForwardingMapDriver::ForwardingMapDriver;

  absl::StatusOr<Fence> CopyOut(char* range,
                                absl::Span<const ChunkHandle> chunks,
                                absl::Span<const ExtentPiece> slot, Bytes size,
                                StreamHandle stream) override {
    absl::MutexLock lock(&mutex_);
    ++copies_;
    mutex_.Await(absl::Condition(&may_end_));
    absl::StatusOr<Fence> fence =
        ForwardingMapDriver::CopyOut(range, chunks, slot, size, stream);
    --copies_;
    return fence;
  }

  void set_may_end(bool may_end) {
    absl::MutexLock lock(&mutex_);
    may_end_ = may_end;
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
  absl::Mutex mutex_;
  int copies_ = 0;
  bool may_end_ = true;
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

  DevicePlanTest() {
    auto driver = HostMapDriver::Create(HostMapOptions{GiB(16)});
    METS_CHECK_OK(driver);
    auto held_up = std::make_unique<HeldUpDriver>(*std::move(driver));
    driver_ = held_up.get();
    auto device =
        Device::Create(uplink_, std::move(held_up),
                       {"host0", "host", GiB(1), Bytes(), absl::Seconds(10)});
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
  mets_stats_t Stats() {
    mets_stats_t stats;
    std::memset(&stats, 0, sizeof(stats));
    device_->GetStats(&stats);
    return stats;
  }
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

TEST_F(DevicePlanTest, BuffersLeaveAndComeBackAtTheirOps) {
  const std::set<int> layers = {3, 4, 20};
  for (int layer : layers) PlanActivation(layer, 5);
  Follow();
  EXPECT_TRUE(device_->tight());
  for (int i = 0; i < 3; ++i) {
    Step([&](int op) {
      for (int layer : layers) {
        char* activation = activations_[layer];
        if (op == layer + 1) AwaitResident(activation, false);
        if (op > layer + 1 && op < Backward(layer) - 5) {
          EXPECT_FALSE(Resident(activation)) << op;
        }
        if (op == Backward(layer) - 5) AwaitResident(activation, true);
      }
      if (op == kLayers) {
        for (int i = 0; i < kLayers; ++i) {
          EXPECT_EQ(Resident(activations_[i]), layers.count(i) == 0) << i;
        }
      }
    });
  }
  EXPECT_EQ(Stats().evicted_bytes_total, Stats().restored_bytes_total);
  EXPECT_EQ(Stats().evicted_bytes_total,
            3u * (SizeOf(3) + SizeOf(4) + SizeOf(20)).count());
}

TEST_F(DevicePlanTest, ChunksOfWhatLeavesStay) {
  PlanActivation(3, 5);
  Follow();
  Bytes used;
  uint64_t cached = 0;
  Step([&](int op) {
    if (op == 3) {
      used = uplink_.used();
      cached = Stats().cached_bytes;
    }
    if (op != 4) return;
    AwaitResident(activations_[3], false);
    EXPECT_EQ(uplink_.used(), used);
    EXPECT_EQ(Stats().cached_bytes,
              cached - SizeOf(4).count() + SizeOf(3).count());
    EXPECT_EQ(Stats().swapped_bytes, static_cast<uint64_t>(SizeOf(3).count()));
  });
}

TEST_F(DevicePlanTest, PersistentBuffersComeBackForTheNextStep) {
  // The weight is written by its backward op, and read again in the next step.
  AddAbsence(LogicalOf(20, true), 20, Backward(20), 10, 20);
  Follow();
  Step();
  for (int i = 0; i < 2; ++i) {
    AwaitResident(weights_[20], false);
    Step([&](int op) {
      if (op == 10) AwaitResident(weights_[20], true);
    });
  }
}

TEST_F(DevicePlanTest, APlanForAnotherStepIsRefused) {
  PlanActivation(3, 5);
  Follow();
  plan_.set_step_signature(plan_.step_signature() + 1);
  EXPECT_FALSE(device_->FollowPlan(plan_).ok());
  EXPECT_FALSE(device_->tight());
  Step();
  EXPECT_EQ(Stats().evicted_bytes_total, 0u);
}

TEST_F(DevicePlanTest, ASlotIsNotUsedWhileBytesOfTheStepBeforeLieInIt) {
  PlanActivation(3, 5);
  Follow();
  kept_ = 3;
  const char value = 3 + step_;
  StepWithAbsence(3, 5);
  char* kept = activations_[3];
  // Clean in the plan's slot.
  ASSERT_EQ(EvictByOrder(kept, plan_.slots(0).slot()), v1::BUFFER_OUTCOME_DONE);
  EXPECT_EQ(Stats().clean_evictions_total, 1u);
  kept_ = -1;
  const uint64_t evicted = Stats().evicted_bytes_total;
  Step();
  ASSERT_TRUE(device_->FollowPlan(v1::Plan()).ok());
  EXPECT_EQ(Stats().evicted_bytes_total, evicted);
  Op* op = Begin({{kept, 0, METS_READ}});
  EXPECT_TRUE(Holds(kept, SizeOf(3), value));
  device_->EndOp(op);
}

TEST_F(DevicePlanTest, WhoLosesItsSlotIsCopiedWhenItLeaves) {
  PlanActivation(3, 5);
  Follow();
  kept_ = 3;
  const char value = 3 + step_;
  StepWithAbsence(3, 5);
  char* kept = activations_[3];
  kept_ = -1;
  Step([&](int op) {
    if (op != 10) return;
    // The slot has its successor's bytes.
    AwaitResident(activations_[3], false);
    EXPECT_EQ(EvictByOrder(kept, plan_.slots(0).slot()),
              v1::BUFFER_OUTCOME_SKIPPED);
    EXPECT_EQ(EvictByOrder(kept, uplink_.NewSlot(*device_, SizeOf(3))),
              v1::BUFFER_OUTCOME_DONE);
  });
  EXPECT_EQ(Stats().clean_evictions_total, 0u);
  Op* op = Begin({{kept, 0, METS_READ}});
  EXPECT_TRUE(Holds(kept, SizeOf(3), value));
  device_->EndOp(op);
}

TEST_F(DevicePlanTest, HeldAndPinnedBuffersStay) {
  PlanActivation(3, 5);
  PlanActivation(5, 5);
  Follow();
  Step([&](int op) {
    if (op == 3) {
      void* held = activations_[3];
      ASSERT_TRUE(device_->SetMobility(held, Mobility::kHeld).ok());
    }
    if (op != 5) return;
    // Another op, which has begun before the last one that reads it.
    Op* other = Begin({{activations_[5], 0, METS_READ}});
    Forward(6);
    ASSERT_TRUE(device_->FollowPlan(v1::Plan()).ok());
    EXPECT_TRUE(Resident(activations_[3]));
    EXPECT_TRUE(Resident(activations_[5]));
    device_->EndOp(other);
    device_->Free(activations_[6]);
  });
  EXPECT_EQ(Stats().evicted_bytes_total, 0u);
}

TEST_F(DevicePlanTest, APlansEndWaitsForItsCopyAndReportsBeforeTheAnswer) {
  PlanActivation(3, 5);
  PlanActivation(4, 5);
  DescriptorInbox inbox;
  OrderWorker worker(inbox, uplink_,
                     [this] { return std::vector<Device*>{device_.get()}; });
  Follow();
  Step([&](int op) {
    if (op == 0) driver_->set_may_end(false);
    if (op != 10) return;
    driver_->AwaitCopy();
    uplink_.TakeSent();
    v1::DaemonMessage order;
    order.mutable_plan()->set_device("host0");
    order.mutable_plan()->set_order_id(7);
    order.mutable_plan()->set_epoch(1);
    worker.Post(std::move(order));
    while (device_->tight()) std::this_thread::yield();
    driver_->set_may_end(true);
    std::vector<v1::ClientMessage> sent;
    while (sent.empty() || !sent.back().has_order_done()) {
      for (v1::ClientMessage& message : uplink_.TakeSent()) {
        sent.push_back(std::move(message));
      }
    }
    EXPECT_EQ(driver_->copies(), 0);
    EXPECT_EQ(sent.back().order_done().order_id(), 7u);
    EXPECT_EQ(sent.back().order_done().error(), "");
    ASSERT_GE(sent.size(), 2u);
    int reported = 0;
    for (const v1::BufferReport& buffer :
         sent[sent.size() - 2].buffer_changes().buffers()) {
      if (buffer.buffer_id() != Info(activations_[3]).buffer_id) continue;
      ++reported;
      EXPECT_EQ(buffer.state(), v1::BUFFER_STATE_SWAPPED);
      EXPECT_EQ(buffer.slot_id(), plan_.slots(0).slot().slot_id());
    }
    EXPECT_EQ(reported, 1);
    // The other one was still to leave.
    EXPECT_TRUE(Resident(activations_[4]));
  });
}

TEST_F(DevicePlanTest, PlansAreAnsweredOnceWithWhatIsWrong) {
  PlanActivation(3, 5);
  DescriptorInbox inbox;
  OrderWorker worker(inbox, uplink_,
                     [this] { return std::vector<Device*>{device_.get()}; });
  const auto answer = [&](const v1::Plan& plan) {
    uplink_.TakeSent();
    v1::DaemonMessage order;
    *order.mutable_plan() = plan;
    worker.Post(std::move(order));
    v1::DaemonMessage next;
    next.mutable_trim()->set_device("host0");
    next.mutable_trim()->set_order_id(99);
    worker.Post(std::move(next));
    std::vector<v1::OrderDone> answers;
    while (answers.empty() || answers.back().order_id() != 99) {
      for (v1::ClientMessage& message : uplink_.TakeSent()) {
        if (message.has_order_done()) answers.push_back(message.order_done());
      }
    }
    EXPECT_EQ(answers.size(), 2u);
    return answers[0].error();
  };
  EXPECT_EQ(answer(plan_), "");
  EXPECT_TRUE(device_->tight());
  v1::Plan unknown_extent = plan_;
  unknown_extent.mutable_slots(0)
      ->mutable_slot()
      ->mutable_pieces(0)
      ->set_extent_id(5);
  EXPECT_NE(answer(unknown_extent), "");
  EXPECT_FALSE(device_->tight());
  EXPECT_EQ(answer(plan_), "");
  v1::Plan other_step = plan_;
  other_step.set_step_signature(1);
  EXPECT_NE(answer(other_step), "");
  EXPECT_FALSE(device_->tight());
  v1::Plan other_device = plan_;
  other_device.set_device("gpu7");
  EXPECT_NE(answer(other_device), "");
}

TEST_F(DevicePlanTest, ABrokenStreamEndsThePlan) {
  PlanActivation(3, 5);
  PlanActivation(4, 5);
  Follow();
  Step([&](int op) {
    if (op == 0) driver_->set_may_end(false);
    if (op != 10) return;
    driver_->AwaitCopy();
    std::thread session([&] {
      device_->Mute();
      EXPECT_EQ(driver_->copies(), 0);
    });
    while (device_->tight()) std::this_thread::yield();
    driver_->set_may_end(true);
    session.join();
    EXPECT_FALSE(Resident(activations_[3]));
    EXPECT_TRUE(Resident(activations_[4]));
    // An order that comes too late.
    EXPECT_FALSE(device_->FollowPlan(plan_).ok());
    uplink_.set_epoch(2);
    device_->BeginEpoch(1);
    device_->SendSnapshot(true);
    EXPECT_FALSE(Resident(activations_[3]));
  });
  const uint64_t evicted = Stats().evicted_bytes_total;
  Step();
  EXPECT_EQ(Stats().evicted_bytes_total, evicted);
}

TEST_F(DevicePlanTest, ARestoreWaitsUntilMemoryIsIdle) {
  // It comes back when the first backward op begins.
  PlanActivation(3, Backward(3) - kLayers);
  Follow();
  std::vector<char*> extras;
  Step([&](int op) {
    if (op == 4) AwaitResident(activations_[3], false);
    if (op == kLayers - 1) {
      uplink_.set_pool(uplink_.used());
      for (Bytes size : {SizeOf(3), SizeOf(0)}) {
        while (char* extra = TryAlloc(size)) extras.push_back(extra);
      }
      ASSERT_FALSE(extras.empty());
    }
    if (op != kLayers) return;
    EXPECT_FALSE(Resident(activations_[3]));
    device_->Free(extras[0]);
    AwaitResident(activations_[3], true);
    uplink_.set_pool(GiB(1));
    for (size_t i = 1; i < extras.size(); ++i) device_->Free(extras[i]);
  });
}

// 70 MiB of activations, in turn, in 52.
TEST_F(DevicePlanTest, AStepLargerThanTheDeviceRunsByThePlan) {
  Bytes weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights += SizeOf(layer);
    if (layer < kLayers - 6) PlanActivation(layer, 8);
  }
  // Gives its cache back, as it does in exchange for chunks of other sizes.
  uplink_.reclaim = [&](Bytes) {
    const Bytes used = uplink_.used();
    device_->Trim(GiB(1), 1);
    return uplink_.used() < used;
  };
  device_->Trim(GiB(1), 1);
  uplink_.set_pool(weights + MiB(52));
  Follow();
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_GT(Stats().evicted_bytes_total, 0u);
}

TEST_F(DevicePlanTest, AnOpWaitsForTheEvictionsThatAreDueBeforeItAsks) {
  PlanActivation(3, 5);
  Follow();
  Step([&](int op) {
    if (op == 3) driver_->set_may_end(false);
    if (op != 4) return;
    driver_->AwaitCopy();
    // All that is left but what the eviction brings.
    uplink_.set_pool(uplink_.used());
    device_->Trim(GiB(1), 1);
    uplink_.set_pool(uplink_.used());
    const int acquires = uplink_.acquires();
    std::thread other([&] {
      Op* op = Begin(
          {{weights_[0], 0, METS_READ},
           {nullptr, static_cast<uint64_t>(SizeOf(3).count()), METS_NEW}});
      char* made = Alloc(SizeOf(3));
      device_->EndOp(op);
      device_->Free(made);
    });
    const uint64_t weight = Info(weights_[0]).buffer_id;
    while (device_->Unwanted(weight)) std::this_thread::yield();
    driver_->set_may_end(true);
    other.join();
    EXPECT_EQ(uplink_.acquires(), acquires);
    uplink_.set_pool(GiB(1));
  });
}

}  // namespace
}  // namespace mets::client
