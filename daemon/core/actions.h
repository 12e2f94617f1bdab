// What comes out of the core.
#ifndef METS_DAEMON_CORE_ACTIONS_H_
#define METS_DAEMON_CORE_ACTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/steps/step_plan.h"
#include "common/steps/step_program.h"
#include "daemon/core/values.h"

namespace mets::core {

// ---- actions to sessions ----------------------------------------------------

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
// Chunks that the session had lent are its own again. Its GateOrder follows.
struct Regrant {
  SessionId session;
  std::string device;
  std::vector<ChunkId> chunks;
};
struct Deny {
  SessionId session;
  RequestId request;
  std::string reason;  // Everything below in one text.
  std::vector<std::string> holders;
  std::string advice;
  bool impossible = false;
};
enum class ShareOutcome {
  kDone,
  kBad,      // What was asked for makes no sense.
  kUnknown,  // No such share in the session's domain.
  kExists,   // There is one; or the session has it.
  kRefused,  // Its size or checksum is another, or there are too many.
};
// The answer to PublishShare and AttachShare.
struct ShareAnswer {
  SessionId session;
  RequestId request;
  ShareOutcome outcome = ShareOutcome::kDone;
  std::string reason;  // Unless it is done; the rest is empty then.
  ShareId share;
  Bytes bytes;
  std::string checksum;
  std::vector<ChunkRef> chunks;
  std::vector<ChunkRef> new_to_session;  // Their descriptors go first.
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
    std::variant<Welcome, Refuse, DeviceReady, Grant, Regrant, Deny, EvictOrder,
                 PlanOrder, TrimOrder, ForgetOrder, GateOrder, LimitsChanged,
                 SendNotice, SendBye, JobLimitSet, ShareAnswer>;

// ---- actions to memory ------------------------------------------------------

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

// ---- actions to the planner -------------------------------------------------

// Asks how a step runs in less memory than it needs (MakePlan). Answered by
// PlanMade; not at once, because it may take a tenth of a second.
struct PlanTask {
  SessionId session;
  std::string device;
  uint64_t number = 0;  // Echoed.
  std::shared_ptr<const steps::StepProgram> program;
  Bytes budget;
  double bus_bytes_per_second = 0;  // Each way.
  int moves = 1;                    // As of DeviceConfig.
};

// ---- actions for operators --------------------------------------------------

// The answer to DrainDevice, PauseJob, EvictJob and KillJob.
struct CommandDone {
  uint64_t call = 0;
  absl::Status status;
  int processes = 0;  // KillJob: that are asked to end.
  Bytes evicted;      // EvictJob: bytes of the devices that the job has less...
  Bytes left;         // ...and still has.
};
// Asks the sessions' processes to end, and kills them after `grace`.
struct EndProcesses {
  std::vector<SessionId> sessions;
  absl::Duration grace;
};

// The last process of a job has ended: a line for the log.
struct JobEnded {
  std::string job;
  std::string device;
  std::string text;  // What sharing has cost it.
};

using OperatorAction = std::variant<CommandDone, EndProcesses, JobEnded>;

using Action =
    std::variant<SessionAction, MemoryAction, PlanTask, OperatorAction>;

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_ACTIONS_H_
