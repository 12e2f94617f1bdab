// DeviceFixture: one device of a fake daemon, and what happens to it.
#ifndef METS_TESTS_CLIENT_DEVICE_FIXTURE_H_
#define METS_TESTS_CLIENT_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/device/host/host_map_driver.h"
#include "tests/client/device_stats.h"
#include "tests/client/fake_uplink.h"

namespace mets::client {

// A pool of 64 MiB. `gated`: as of a program that announces no ops. `phantom`:
// see DeviceOptions.
class DeviceFixture : public testing::Test {
 protected:
  explicit DeviceFixture(bool gated, Bytes phantom = Bytes()) {
    auto driver = HostMapDriver::Create(HostMapOptions{GiB(16)});
    METS_CHECK_OK(driver);
    begin_ = (*driver)->region_begin();
    end_ = (*driver)->region_end();
    DeviceOptions options{"host0", "host", MiB(64), Bytes(), absl::Seconds(10)};
    options.gated = gated;
    options.phantom = phantom;
    auto device =
        Device::Create(uplink_, *std::move(driver), std::move(options));
    METS_CHECK_OK(device);
    device_ = *std::move(device);
  }

  char* Alloc(Bytes bytes, char value) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    std::memset(address, value, bytes.count());
    return static_cast<char*>(address);
  }
  mets_buffer_info Info(char* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    METS_CHECK_OK(device_->FindBuffer(address, &info));
    return info;
  }
  mets_stats_t Stats() { return StatsOf(*device_); }
  bool Resident(char* address) { return Info(address).resident != 0; }
  // The first and the last byte.
  static bool Holds(const char* address, Bytes bytes, char value) {
    return address[0] == value && address[bytes.count() - 1] == value;
  }

  // The buffer's own slot, the same each time.
  const v1::Slot& SlotOf(char* address) {
    v1::Slot& slot = slots_[address];
    if (slot.slot_id() == 0) {
      slot = uplink_.NewSlot(*device_,
                             Bytes(static_cast<int64_t>(Info(address).bytes)));
    }
    return slot;
  }
  // As one order of one candidate.
  v1::BufferOutcome Evict(char* address) {
    const uint64_t id = Info(address).buffer_id;
    return Answer(id, SlotOf(address),
                  device_->Evict(id, SlotOf(address), 1).outcome);
  }
  v1::BufferOutcome Answer(uint64_t id, const v1::Slot& slot,
                           v1::BufferOutcome outcome) {
    v1::OrderDone done;
    v1::BufferResult* answer = done.add_results();
    answer->set_buffer_id(id);
    answer->set_outcome(outcome);
    answer->set_slot_id(slot.slot_id());
    device_->AnswerEvictions(std::move(done));
    return outcome;
  }

  void Gate(v1::GateState state, uint32_t idle_ms = 0) {
    v1::Gate order;
    order.set_order_id(++order_);
    order.set_device("host0");
    order.set_state(state);
    order.set_moment(v1::GATE_MOMENT_NOW);
    order.set_idle_ms(idle_ms);
    device_->FollowGate(order);
  }
  void CloseGate() { Gate(v1::GATE_STATE_CLOSED); }
  void OpenGate() { Gate(v1::GATE_STATE_OPEN, 60000); }
  // How many turns have ended since the last call.
  int TurnsEnded() {
    int ended = 0;
    for (const v1::ClientMessage& m : uplink_.TakeSent()) {
      ended += m.has_turn_ended();
    }
    return ended;
  }
  void AwaitWaiter() {
    while (!device_->gate().Waited()) absl::SleepFor(absl::Microseconds(100));
  }

  char* begin_;  // Of the device's addresses.
  char* end_;
  FakeUplink uplink_{MiB(64)};
  std::unique_ptr<Device> device_;
  std::map<char*, v1::Slot> slots_;
  uint64_t order_ = 0;
};

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_DEVICE_FIXTURE_H_
