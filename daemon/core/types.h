// The core's vocabulary: what goes in (inputs) and what comes out (actions).
//
// Plain values; no I/O, no clock, no threads. The transport turns messages into
// inputs and actions into messages; daemon/memory carries out memory actions.
// What a client says is not trusted: the core checks every value of it.
#ifndef METS_DAEMON_CORE_TYPES_H_
#define METS_DAEMON_CORE_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"

namespace mets::core {

// ---- configuration -------------------------------------------------------

struct DeviceConfig {
  DeviceId id;
  std::string name;                  // "host0"
  std::string kind;                  // "host"
  Bytes pool;                        // The hard bound.
  std::vector<Bytes> chunk_classes;  // Ascending; each divides the next.
  // To or from swap space, one way.
  double bus_bytes_per_second = 10e9;
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
  // Taking turns (daemon/core/scheduling): the part of the time that exchanges
  // of bytes between jobs may take, and the longest wait for a turn.
  double moving_share = 0.02;
  absl::Duration max_wait = absl::Seconds(30);
  // Steps that need more than they may have are planned (PlanKeeper).
  bool plans = true;
  // For comparison: jobs that do not fit together take turns of this length,
  // wherever in their steps that ends. Zero: what the exchange needs.
  absl::Duration fixed_quantum;
  // Table bounds per session: hostile clients.
  int max_buffers_per_session = 1 << 20;
  int max_requests_per_session = 1024;
};

// A buffer is at most so large: more than any pool, as after a restart with a
// smaller one; sums over all buffers of a session do not overflow.
inline constexpr Bytes kLargestBuffer = GiB(4096);

// ---- values ----------------------------------------------------------------

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

// Monotonic counters of a process on a device.
struct Totals {
  Bytes evicted;
  Bytes restored;
  int64_t evictions = 0;
  int64_t restores = 0;
  int64_t unobserved_accesses = 0;
  Bytes peak_live;
  Bytes peak_resident;
};

// ---- inputs
// ------------------------------------------------------------------

// A process has connected and said who it is. Answered by Welcome or Refuse.
struct SessionOpened {
  SessionId session;
  DomainId domain;
  uint32_t uid = 0;
  std::string job;
  Bytes limit;      // Zero: none.
  Bytes guarantee;  // Zero: none.
  int priority = 0;
  int weight = 1;  // Share of the device time within a priority.
  // It had a session with an earlier daemon: nothing is granted to it, and its
  // record (ExpectSession) holds, until its Snapshot is complete.
  bool expects_snapshot = false;
  // The record of it, if there is one.
  SessionId recovers;
};
// Its stream broke; the process lives. Its orders count as not followed; it
// gets no messages until it is back. What it holds stays its own.
struct SessionLost {
  SessionId session;
};
// The same process has a stream again; a Snapshot follows. Answered by Welcome:
// the transport drops every other action of the session before that (they were
// decided for the old stream).
struct SessionResumed {
  SessionId session;
};
// The process has ended: everything it held comes back.
struct SessionEnded {
  SessionId session;
};
// At start: a session of the earlier daemon that may still hold memory.
struct ExpectSession {
  SessionId session;  // The id it had; ids of the new daemon start behind.
  DomainId domain;
  std::string job;
  std::vector<std::pair<std::string, Bytes>> held;  // Device name, bytes.
};
// That process has ended.
struct ExpectedSessionGone {
  SessionId session;
};
struct AttachDevice {
  SessionId session;
  std::string device;  // Empty: the first.
  bool ops_seen = true;
};
struct Acquire {
  SessionId session;
  RequestId request;
  std::string device;
  std::vector<Bytes> ranges;
  absl::Duration wait;  // InfiniteDuration: forever; zero: what is free or
                        // cached.
  bool overdraft = false;
  bool pinned = false;  // It waits with buffers pinned.
};
struct Cancel {
  SessionId session;
  RequestId request;
};
struct Release {
  SessionId session;
  std::string device;
  std::vector<ChunkId> chunks;
  Bytes orphan;
  bool overdraft = false;
  OrderId order;
};
enum class Outcome { kDone, kSkipped, kFreed, kFailed };
struct BufferResult {
  BufferId buffer;
  Outcome outcome = Outcome::kSkipped;
  bool clean = false;
  SlotId slot;
};
struct OrderDone {
  SessionId session;
  OrderId order;
  std::vector<BufferResult> results;
  std::string error;
};
struct Forgotten {
  SessionId session;
  OrderId order;
  std::vector<ChunkId> kept;
};
// A session's Release, OrderDone and BufferChanges arrive in the order of what
// happened: a report that was made before an eviction and arrives after its
// OrderDone would free the slot that holds the bytes.
struct BufferChanges {
  SessionId session;
  std::string device;
  std::vector<BufferReport> buffers;
  Bytes cached;
  Bytes pinned;
  Totals totals;
};
struct Snapshot {
  SessionId session;
  std::string device;
  std::vector<ChunkId> chunks;  // Of this epoch.
  Bytes orphan;
  std::vector<BufferReport> buffers;
  Bytes cached;
  Bytes orphan_swap;
  Totals totals;
  bool last = false;
};
// The session's step, in parts: the ops and buffers of the parts follow one
// another. It takes the place of the one before.
struct StepSeen {
  SessionId session;
  std::string device;
  steps::StepProgram part;
  bool first = true;
  bool last = true;
};
// Where the session is in it; sent about once a second.
struct StepProgress {
  SessionId session;
  std::string device;
  uint64_t signature = 0;      // Of the step that repeats now; 0: none does.
  int64_t steps = 0;           // Repetitions so far, of any step.
  absl::Duration duration;     // Of the last one.
  absl::Duration since_begin;  // Of the present one.
};
// What the session's last step needed; sent when that changes.
struct StepNeed {
  SessionId session;
  std::string device;
  Bytes peak;        // The most that was live at once.
  Bytes persistent;  // Live between two steps.
  absl::Duration step;
};
// An op waits at the closed gate.
struct TurnWanted {
  SessionId session;
  std::string device;
  OrderId order;  // The GateOrder that it has followed last.
};
// The gate has closed and no op runs any more.
struct TurnEnded {
  SessionId session;
  std::string device;
  OrderId order;            // As above.
  absl::Duration computed;  // Device time used since the gate opened.
  bool step_end = false;    // The gate closed between two steps.
};
// From the admin service.
struct SetJobLimit {
  std::string job;
  Bytes limit;
  uint64_t call = 0;  // Echoed in JobLimitSet.
};
// The answer to a PlanTask.
struct PlanMade {
  SessionId session;
  std::string device;
  uint64_t number = 0;
  absl::StatusOr<steps::StepPlan> plan;
};
// From daemon/memory.
struct ChunkCreated {
  ChunkId chunk;
  absl::Status status;
};
struct ChunkDestroyed {
  ChunkId chunk;
  absl::Status status;
};
struct ExtentCreated {
  ExtentId extent;
  absl::Status status;
};
struct ExtentDestroyed {
  ExtentId extent;
  absl::Status status;
};
// The time of next_deadline() has come.
struct Tick {};
// metsd stops: every session gets a Bye.
struct Stop {};

using Input =
    std::variant<SessionOpened, SessionLost, SessionResumed, SessionEnded,
                 ExpectSession, ExpectedSessionGone, AttachDevice, Acquire,
                 Cancel, Release, OrderDone, Forgotten, BufferChanges, Snapshot,
                 StepSeen, StepProgress, StepNeed, TurnWanted, TurnEnded,
                 SetJobLimit, PlanMade, ChunkCreated, ChunkDestroyed,
                 ExtentCreated, ExtentDestroyed, Tick, Stop>;

// ---- actions to sessions
// -------------------------------------------------------

struct Welcome {
  SessionId session;
  Bytes limit;
  Bytes guarantee;
  int priority = 0;
  std::vector<std::string> devices;
};
// The session is not admitted (or broke the rules): send the reason, end it.
struct Refuse {
  SessionId session;
  std::string reason;
};
struct DeviceReady {
  SessionId session;
  std::string device;
  std::string kind;
  Bytes pool;
  std::vector<Bytes> chunk_classes;
  std::string error;
};
struct Grant {
  SessionId session;
  RequestId request;
  std::vector<ChunkRef> chunks;          // Range by range.
  std::vector<uint32_t> range_chunks;    // How many for each range.
  std::vector<ChunkRef> new_to_session;  // Their descriptors go first.
  bool overdraft = false;
};
struct Deny {
  SessionId session;
  RequestId request;
  std::string reason;  // Everything below in one text.
  std::vector<std::string> holders;
  std::string advice;
  bool impossible = false;
};
struct ExtentRef {
  ExtentId id;
  Bytes size;
};
struct EvictOrder {
  SessionId session;
  OrderId order;
  std::string device;
  Bytes target;
  struct Candidate {
    BufferId buffer;
    Slot slot;
  };
  std::vector<Candidate> candidates;      // Best first, spares at the end.
  std::vector<ExtentRef> new_to_session;  // Their descriptors go first.
};
// To be followed from now on, instead of the plan before; without absences,
// there is none.
struct PlanOrder {
  SessionId session;
  OrderId order;
  std::string device;
  steps::StepPlan plan;
  struct Place {
    uint32_t buffer = 0;  // Index into the StepProgram's buffers.
    Slot slot;
  };
  std::vector<Place> places;              // One for each buffer that leaves.
  std::vector<ExtentRef> new_to_session;  // Their descriptors go first.
};
struct TrimOrder {
  SessionId session;
  OrderId order;
  std::string device;
  Bytes target;
};
struct ForgetOrder {
  SessionId session;
  OrderId order;
  std::vector<ChunkId> chunks;
  std::vector<ExtentId> extents;
};
// When a gate closes: before the next op, or at the end of the step.
enum class GateMoment { kNow, kStepEnd };
// Open, kNow: until told. Open, kStepEnd: for one step, which is a turn.
// Closed, kNow: before the next op. Closed, kStepEnd: after the running step. A
// newer order takes an older one's place; what closes is answered by TurnEnded.
struct GateOrder {
  SessionId session;
  OrderId order;  // Gate orders are numbered for themselves, by device.
  std::string device;
  bool open = true;
  GateMoment moment = GateMoment::kNow;
  // Open: the gate closes also when no op has run for this long. Zero: the
  // gate is not needed any more.
  absl::Duration idle;
};
struct LimitsChanged {
  SessionId session;
  std::string device;
  Bytes limit;
  bool tight = false;
};
struct SendNotice {
  SessionId session;
  std::string text;
};
struct SendBye {
  SessionId session;
  std::string reason;
  bool restarting = false;
};
// Answer to SetJobLimit, to the admin service.
struct JobLimitSet {
  uint64_t call = 0;
  absl::Status status;
};

using SessionAction =
    std::variant<Welcome, Refuse, DeviceReady, Grant, Deny, EvictOrder,
                 PlanOrder, TrimOrder, ForgetOrder, GateOrder, LimitsChanged,
                 SendNotice, SendBye, JobLimitSet>;

// ---- actions to memory
// -----------------------------------------------------------

// Answered by ChunkCreated.
struct CreateChunk {
  DeviceId device;
  ChunkId chunk;
  Bytes size;
};
// Answered by ChunkDestroyed. No client holds it any more.
struct DestroyChunk {
  DeviceId device;
  ChunkId chunk;
};
struct CreateExtent {
  ExtentId extent;
  DomainId domain;
  Bytes size;
};
struct DestroyExtent {
  ExtentId extent;
};

using MemoryAction =
    std::variant<CreateChunk, DestroyChunk, CreateExtent, DestroyExtent>;

// ---- actions to the planner
// ----------------------------------------------------------

// Asks how a step runs in less memory than it needs (MakePlan). Answered by
// PlanMade; not at once, because it may take a tenth of a second.
struct PlanTask {
  SessionId session;
  std::string device;
  uint64_t number = 0;  // Echoed.
  std::shared_ptr<const steps::StepProgram> program;
  Bytes budget;
  double bus_bytes_per_second = 0;  // Each way.
};

using Action = std::variant<SessionAction, MemoryAction, PlanTask>;

// ---- state, for status, metrics and the state file
// ----------------------------------

enum class SharingMode {
  kFree,    // Everybody computes at once.
  kTurns,   // Step by step, one after the other; nothing moves.
  kQuanta,  // One after the other; bytes move between.
};

struct DeviceStatus {
  std::string id;
  std::string kind;
  Bytes pool, free, cached, resident, moving, draining, orphan;
  Bytes swap_used, swap_clean, swap_limit;
  SharingMode mode = SharingMode::kFree;
  int64_t turns_total = 0;
  int64_t quanta_total = 0;
};

struct JobStatus {
  std::string name;
  std::string device;
  DomainId domain;
  uint32_t uid = 0;
  int sessions = 0;
  Bytes resident, swapped, pinned, held, cached, limit, guarantee;
  int priority = 0;
  Totals totals;
  int waiting = 0;
  int64_t waits_total = 0;
  absl::Duration wait_total;
  int unresponsive_sessions = 0;
  int weight = 1;
  bool gate_open = true;
  int64_t turns_total = 0;  // Quanta included.
  absl::Duration gate_wait_total;
  int64_t steps = 0;             // Repetitions that its processes have found.
  absl::Duration step_duration;  // Of the last one; the longest of them.
};

// What one session holds; the state file records it.
struct SessionHolding {
  SessionId session;
  DomainId domain;
  std::string job;
  std::vector<std::pair<std::string, Bytes>> held;  // Device name, bytes.
};

struct Status {
  std::string policy;
  std::vector<DeviceStatus> devices;
  std::vector<JobStatus> jobs;
  std::vector<SessionHolding> sessions;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_TYPES_H_
