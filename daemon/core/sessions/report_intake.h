// ReportIntake: what sessions say about their memory.
#ifndef METS_DAEMON_CORE_SESSIONS_REPORT_INTAKE_H_
#define METS_DAEMON_CORE_SESSIONS_REPORT_INTAKE_H_

#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/state.h"
#include "daemon/core/steps/plan_keeper.h"
#include "daemon/core/swap/swap_space.h"

namespace mets::core {

// Books released chunks, answers to orders, and reports on buffers. What cannot
// be true (a chunk of somebody else, a size beyond the pool) refuses the
// session and books nothing.
//
// Correctness of the data never depends on a report's being recent: a slot is
// freed only when the client itself says that its buffer is resident without
// it, and one that an order names only when the order has been answered.
//
// Not thread-safe. Borrows everything.
class ReportIntake {
 public:
  ReportIntake(State* state, SwapSpace* swap, PlanKeeper* plans)
      : state_(*state), swap_(*swap), plans_(*plans) {}

  void OnRelease(const Release& input);
  void OnOrderDone(const OrderDone& input);
  void OnBufferChanges(const BufferChanges& input);

  // Empty, or what is wrong with a report on a buffer of `holding`.
  std::string Fault(const BufferReport& report, const Holding& holding) const;
  // Books one report. REQUIRES: it has no fault.
  void Apply(Session& session, size_t device, const BufferReport& report);

 private:
  // Returns the bytes. On failure nothing has changed.
  absl::StatusOr<Bytes> GiveBack(const Release& input, Device& device,
                                 const Session& session, Holding& holding);
  void FinishCandidate(Session& session, const Order& order,
                       const Order::Candidate& candidate,
                       const BufferResult* result);
  void FinishEvict(Session& session, const Order& order,
                   const OrderDone& input);

  State& state_;
  SwapSpace& swap_;
  PlanKeeper& plans_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_REPORT_INTAKE_H_
