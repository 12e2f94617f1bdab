#include "client/src/eviction_window.h"

#include <optional>
#include <utility>

namespace mets::client {
namespace {

// Enough for the bus to be busy while a buffer is unmapped; not so much that
// what an op brings back meanwhile has been copied in vain.
constexpr size_t kMostMoves = 16;
constexpr Bytes kMostBytes = MiB(512);

}  // namespace

void EvictionWindow::Begin(int number, uint64_t buffer_id,
                           const v1::Slot& slot) {
  while (moves_.size() >= kMostMoves || bytes_ >= kMostBytes) FinishOne();
  Device::EvictResult result;
  std::optional<Device::Departure> departure =
      device_.BeginEviction(buffer_id, slot, &result);
  if (!departure.has_value()) return done_(number, result);
  bytes_ += departure->size;
  moves_.push_back({number, *std::move(departure)});
}

void EvictionWindow::FinishOne() {
  Move move = std::move(moves_.front());
  moves_.pop_front();
  bytes_ -= move.departure.size;
  done_(move.number,
        device_.FinishEviction(std::move(move.departure), order_id_));
}

}  // namespace mets::client
