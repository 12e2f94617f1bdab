// What goes into the core.
#ifndef METS_DAEMON_CORE_INPUTS_H_
#define METS_DAEMON_CORE_INPUTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"
#include "daemon/core/values.h"

namespace mets::core {

// A process has connected and said who it is. Answered by Welcome or Refuse.
struct SessionOpened {
  SessionId session;
  DomainId domain;
  ProcessIdentity process;
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
  Caps caps;
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
  ProcessIdentity process;
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
  bool pinned = false;         // It waits with buffers pinned.
  uint64_t op = 0;             // Whose token it is: of the session, by number.
  bool fewest_chunks = false;  // Of as few chunks as can be.
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
  bool lent = false;  // It would like the chunks back with its next turn.
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
  std::vector<HeldShare> shares;  // Of any epoch.
  // Of this epoch, that it has asked to publish without an answer: they may be
  // a share's by now.
  std::vector<ChunkId> publishing;
};
// The chunks of a buffer become a share. Answered by ShareAnswer; the same for
// the same thing asked again.
struct PublishShare {
  SessionId session;
  RequestId request;
  std::string device;
  std::string name;
  std::string checksum;
  Bytes bytes;
  std::vector<ChunkId> chunks;
};
// The session maps a share, too. Answered by ShareAnswer.
struct AttachShare {
  SessionId session;
  RequestId request;
  std::string device;
  std::string name;
  std::string checksum;  // It must have; empty: any.
  Bytes bytes;           // It must have; zero: any.
};
// It has unmapped it.
struct DetachShare {
  SessionId session;
  std::string device;
  ShareId share;
  Epoch epoch;  // As HeldShare's.
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
  // Of it: ops waited for memory and copies, in the first two steps.
  absl::Duration stalled;
};
// From the admin service.
struct SetJobLimit {
  std::string job;
  Bytes limit;
  uint64_t call = 0;  // Echoed in JobLimitSet.
};
// From the admin service, as all that follow with a `call`: CommandDone echoes
// it. Whether the device takes new jobs.
struct DrainDevice {
  std::string device;
  bool drain = true;
  uint64_t call = 0;
};
// Whether ops of the job may start.
struct PauseJob {
  std::string job;
  bool pause = true;
  uint64_t call = 0;
};
// What can leave the devices leaves, once.
struct EvictJob {
  std::string job;
  uint64_t call = 0;
};
// Its processes are asked to end, and made to after `grace`.
struct KillJob {
  std::string job;
  absl::Duration grace;
  uint64_t call = 0;
};
// What an earlier daemon was told; once its sessions are known. Devices and
// jobs that there are no more are passed over.
struct RestoreSettings {
  OperatorSettings settings;
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

using Input = std::variant<
    SessionOpened, SessionLost, SessionResumed, SessionEnded, ExpectSession,
    ExpectedSessionGone, AttachDevice, Acquire, Cancel, Release, OrderDone,
    Forgotten, BufferChanges, Snapshot, PublishShare, AttachShare, DetachShare,
    StepSeen, StepProgress, StepNeed, TurnWanted, TurnEnded, SetJobLimit,
    DrainDevice, PauseJob, EvictJob, KillJob, RestoreSettings, PlanMade,
    ChunkCreated, ChunkDestroyed, ExtentCreated, ExtentDestroyed, Tick, Stop>;

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_INPUTS_H_
