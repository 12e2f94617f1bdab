// PlanWorker: makes plans in its own thread.
#ifndef METS_DAEMON_APP_PLAN_WORKER_H_
#define METS_DAEMON_APP_PLAN_WORKER_H_

#include <memory>
#include <utility>

#include "daemon/core/ports.h"
#include "daemon/core/victims/victim_policy.h"
#include "daemon/memory/work_queue.h"

namespace mets::app {

// Thread-safe. The sink is borrowed and must outlive the worker; the destructor
// waits for the plan under way.
class PlanWorker : public core::PlannerPort {
 public:
  PlanWorker(std::unique_ptr<core::VictimPolicy> policy, core::InputSink& sink)
      : policy_(std::move(policy)), sink_(sink) {}

  void Perform(core::PlanTask task) override;

 private:
  const std::unique_ptr<core::VictimPolicy> policy_;
  core::InputSink& sink_;
  memory::WorkQueue worker_;  // Last: it uses the others.
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_PLAN_WORKER_H_
