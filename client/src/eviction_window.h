// EvictionWindow: several evictions of one order under way at a time.
#ifndef METS_CLIENT_SRC_EVICTION_WINDOW_H_
#define METS_CLIENT_SRC_EVICTION_WINDOW_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "client/src/device.h"

namespace mets::client {

// Begins evictions and finishes them in the same order, so that the bus copies
// the next buffers while the first ones are unmapped and given back.
//
// Used by one thread. Borrows the device. What is under way is finished before
// the window goes.
class EvictionWindow {
 public:
  // Called once for each eviction, with its number.
  using Done = std::function<void(int, const Device::EvictResult&)>;

  EvictionWindow(Device& device, uint64_t order_id, Done done)
      : device_(device), order_id_(order_id), done_(std::move(done)) {}
  ~EvictionWindow() {
    while (!moves_.empty()) FinishOne();
  }
  EvictionWindow(const EvictionWindow&) = delete;
  EvictionWindow& operator=(const EvictionWindow&) = delete;

  // Finishes others first, when too many are under way.
  void Begin(int number, uint64_t buffer_id, const v1::Slot& slot);
  // Blocks until the first one has ended. REQUIRES: bytes() > 0.
  void FinishOne();

  // Sizes of the buffers that are under way.
  Bytes bytes() const { return bytes_; }

 private:
  struct Move {
    int number;
    Device::Departure departure;
  };

  Device& device_;
  const uint64_t order_id_;
  const Done done_;
  std::deque<Move> moves_;
  Bytes bytes_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_EVICTION_WINDOW_H_
