// The core's configuration, and the values that inputs and actions carry.
#ifndef METS_DAEMON_CORE_VALUES_H_
#define METS_DAEMON_CORE_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace mets::core {

// ---- configuration ----------------------------------------------------------

struct DeviceConfig {
  DeviceId id;
  std::string name;                  // "host0"
  std::string kind;                  // "host"
  Bytes pool;                        // The hard bound.
  std::vector<Bytes> chunk_classes;  // Ascending; each divides the next.
  // To or from swap space, one way.
  double bus_bytes_per_second = 10e9;
  // Moves that a client has under way at a time for its plan, each way.
  int moves = 1;
};

struct CoreConfig {
  Epoch epoch;
  std::vector<DeviceConfig> devices;
  // Swap space is shared by all devices.
  Bytes swap_limit;
  // Size of one extent; the last one may be smaller.
  Bytes extent_size;
  // An order not answered within this makes its session unresponsive.
  absl::Duration order_timeout = absl::Seconds(5);
  // How long sessions of an earlier daemon may take to come back before the
  // device opens with what is recorded of them.
  absl::Duration recovery_grace = absl::Seconds(5);
  // What nobody has used for so long is destroyed (IdleRelease).
  absl::Duration idle_release = absl::InfiniteDuration();
  // Taking turns (daemon/core/scheduling): the part of the time that exchanges
  // of bytes between jobs may take, and the longest wait for a turn.
  double moving_share = 0.02;
  absl::Duration max_wait = absl::Seconds(30);
  // The part of its time that a job may lose to copies for jobs of lower
  // priority (MovePacer).
  double interference_bound = 0.02;
  // Steps that need more than they may have are planned (PlanKeeper).
  bool plans = true;
  // For comparison: jobs that do not fit together take turns of this length,
  // wherever in their steps that ends. Zero: what the exchange needs.
  absl::Duration fixed_quantum;
  // What is decided is noted for Core::TakeEvents.
  bool events = false;
  // What a successor would have to know is noted for Core::TakeChanges.
  bool changes = false;
  // Table bounds per session: hostile clients.
  int max_buffers_per_session = 1 << 20;
  int max_requests_per_session = 1024;
  // On one device.
  int max_shares_per_domain = 1024;
};

// A buffer is at most so large: more than any pool, as after a restart with a
// smaller one; sums over all buffers of a session do not overflow.
inline constexpr Bytes kLargestBuffer = GiB(4096);

// What an operator grants at most, whatever a job wishes for.
struct Caps {
  std::optional<int> max_priority;
  std::optional<Bytes> max_guarantee;
  std::optional<Bytes> max_limit;  // Also of jobs that wish for no limit.
};

// ---- values -----------------------------------------------------------------

// A process: the pid alone is reused, with its start time it is unique.
struct ProcessIdentity {
  uint32_t uid = 0;
  int32_t pid = 0;  // 0: in another pid namespace, not known.
  uint64_t start_time = 0;

  friend bool operator==(const ProcessIdentity& a, const ProcessIdentity& b) {
    return a.uid == b.uid && a.pid == b.pid && a.start_time == b.start_time;
  }
};

enum class Mobility { kMovable, kHeld, kFixed };
enum class BufferState { kResident, kSwapped };

struct SlotPiece {
  ExtentId extent;
  Bytes offset;
  Bytes size;
};

struct Slot {
  SlotId id;
  absl::InlinedVector<SlotPiece, 1> pieces;  // Mostly one.
};

struct ChunkRef {
  ChunkId id;
  Bytes size;
};

// A buffer as its client last described it.
struct BufferReport {
  BufferId id;
  Bytes size;
  BufferState state = BufferState::kResident;
  Mobility mobility = Mobility::kMovable;
  bool clean = false;
  bool pinned = false;
  bool freed = false;
  absl::Duration idle;  // Since its last use.
  SlotId slot;          // Of this epoch, or none.
  Bytes orphan;         // Bytes of it in chunks of earlier epochs.
  // 1 + its index in the buffers of the session's step; 0: it has none.
  uint32_t logical = 0;
};

// A share that a process has mapped.
struct HeldShare {
  ShareId id;
  Epoch epoch;  // In which it was published.
  Bytes size;   // Of its chunks.
};

// What an operator has told the daemon and has not taken back; it outlives the
// daemon.
struct OperatorSettings {
  struct Job {
    DomainId domain;
    std::string name;
    bool paused = false;
    std::optional<Bytes> limit;  // Zero: none.
  };
  std::vector<std::string> drained;  // Devices.
  std::vector<Job> jobs;

  bool empty() const { return drained.empty() && jobs.empty(); }
};

// Monotonic counters of a process on a device.
struct Totals {
  Bytes evicted;
  Bytes restored;
  int64_t evictions = 0;
  int64_t restores = 0;
  int64_t unobserved_accesses = 0;
  int64_t clean_evictions = 0;  // Of the evictions: without a copy.
  // In which an op waited for buffers to come back.
  absl::Duration restore_stall;
  int64_t steps = 0;         // That have ended.
  absl::Duration step_time;  // Of all of them, waits included.
  absl::Duration step_wait;  // Of that: for a turn, for memory, for copies.
  Bytes peak_live;
  Bytes peak_resident;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_VALUES_H_
