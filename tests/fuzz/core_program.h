// Programs for the model fuzzing of the core.
#ifndef METS_TESTS_FUZZ_CORE_PROGRAM_H_
#define METS_TESTS_FUZZ_CORE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mets::core {

// Each operation is a struct; `s` chooses a session, `b` one of its buffers.
struct OpenOp {
  uint64_t job, domain;
  int64_t limit_mib, guarantee_mib;
  int priority;
  bool gated = false;
  uint64_t device = 0;
};
struct AllocOp {
  uint64_t s;
  int64_t kib;
  int wait_ms;
  bool overdraft;
  bool fewest_chunks = false;
};
struct TouchOp {
  uint64_t s, b;
  bool write;
};
struct FreeOp {
  uint64_t s, b;
  bool cache;
};
struct PinOp {
  uint64_t s, b;
  bool pinned;
};
struct ReportOp {
  uint64_t s;
};
struct OverdraftBackOp {
  uint64_t s;
};
struct CancelOp {
  uint64_t s, request;
};
struct KillOp {
  uint64_t s;
};
struct LoseOp {
  uint64_t s;
};
struct ResumeOp {
  uint64_t s;
};
struct BehaveOp {
  uint64_t s;
  int how;  // Bits: silent, skips, fails, keeps, computes.
};
// What a step needs, in per cent of the pool.
struct NeedOp {
  uint64_t s;
  int peak, persistent, step_ms;
};
// It says that an op waits at the gate. `old`: it names an earlier order.
struct WantTurnOp {
  uint64_t s, old;
};
// An op comes to the gate.
struct WaitAtGateOp {
  uint64_t s;
};
// A turn ends by itself, or a message comes late.
struct EndTurnOp {
  uint64_t s, old;
  int64_t computed_ms;
};
// Says that its buffers are those of a step whose ops use one each, all of
// which live at once.
struct StepOp {
  uint64_t s;
  int buffers;
  int64_t kib;  // Of each.
};
// The next task is answered. `absent`: bits, which of the step's buffers leave;
// none: it cannot be planned.
struct PlanOp {
  uint64_t absent;
};
// A buffer leaves, or comes back, by the session's plan.
struct PlanMoveOp {
  uint64_t s, b;
  bool leaves;
};
// Publishes a buffer under one of a few names, attaches or detaches one.
enum class ShareDeed { kPublish, kAttach, kDetach };
struct ShareOp {
  uint64_t s, b;
  ShareDeed deed;
  uint64_t name;
};
struct GarbageOp {
  uint64_t s;
  int kind;
  uint64_t value;
};
struct LimitOp {
  uint64_t job;
  int64_t mib;
};
// What operators command: bits 0 and 1 say what, bit 2 whether it is undone.
struct CommandOp {
  uint64_t job;
  int what;
};
struct FailCreationsOp {
  int count;
};
struct DeliverOp {
  uint64_t s;
  int count;
};
struct PumpOp {};
struct AdvanceOp {
  int ms;
};
struct RestartOp {
  int64_t pool_mib;
};
struct ReturnOp {
  uint64_t s;
};
// The core is killed; another one takes over.
struct SucceedOp {};

using Op = std::variant<OpenOp, AllocOp, TouchOp, FreeOp, PinOp, ReportOp,
                        OverdraftBackOp, CancelOp, KillOp, LoseOp, ResumeOp,
                        BehaveOp, NeedOp, WantTurnOp, WaitAtGateOp, EndTurnOp,
                        StepOp, PlanOp, PlanMoveOp, ShareOp, GarbageOp, LimitOp,
                        CommandOp, FailCreationsOp, DeliverOp, PumpOp,
                        AdvanceOp, RestartOp, ReturnOp, SucceedOp>;
using Program = std::vector<Op>;

// The program as the list that stands for it in the source.
std::string Text(const Program& program);

}  // namespace mets::core

#endif  // METS_TESTS_FUZZ_CORE_PROGRAM_H_
