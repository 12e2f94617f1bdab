// Strong identifiers: a buffer is never mistaken for a chunk.
#ifndef METS_COMMON_BASE_IDS_H_
#define METS_COMMON_BASE_IDS_H_

#include <cstdint>
#include <ostream>
#include <utility>

namespace mets {

// An identifier of one kind of thing. Value 0 is "none".
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  constexpr bool ok() const { return value_ != 0; }

  friend constexpr bool operator==(Id a, Id b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(Id a, Id b) { return a.value_ < b.value_; }
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) {
    return out << id.value_;
  }

 private:
  uint64_t value_ = 0;
};

using SessionId = Id<struct SessionTag>;  // A connected process.
using DomainId = Id<struct DomainTag>;    // A trust domain.
using DeviceId = Id<struct DeviceTag>;    // 1, 2, …: order of configuration.
using ChunkId = Id<struct ChunkTag>;      // Unique within an epoch.
using ExtentId = Id<struct ExtentTag>;    // Unique within an epoch.
using SlotId = Id<struct SlotTag>;        // Unique within an epoch.
using BufferId = Id<struct BufferTag>;    // Unique within a session.
using RequestId = Id<struct RequestTag>;  // Unique within a session.
using OrderId = Id<struct OrderTag>;      // Unique within an epoch.
using ShareId = Id<struct ShareTag>;      // Unique within an epoch.
using Epoch = Id<struct EpochTag>;        // One daemon start.

}  // namespace mets

#endif  // METS_COMMON_BASE_IDS_H_
