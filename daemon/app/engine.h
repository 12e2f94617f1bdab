// Engine: drives the core in its own thread.
#ifndef METS_DAEMON_APP_ENGINE_H_
#define METS_DAEMON_APP_ENGINE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "daemon/core/core.h"
#include "daemon/core/costs/duration_histogram.h"
#include "daemon/core/ports.h"

namespace mets::app {

// Takes inputs from all sides, steps the core with each, and hands the actions
// to the ports, in order. Inputs posted before Start wait for it.
//
// Thread-safe. The clock and the ports are borrowed; ports must work until Stop
// has returned. Ports are called without any lock held.
class Engine : public core::InputSink, public core::StatusSource {
 public:
  Engine(std::unique_ptr<core::Core> core, const Clock& clock);
  ~Engine() override;

  // Called in the engine's thread after steps that may have changed what a
  // session holds. `urgent`: a session is new. Set before Start.
  void set_on_change(std::function<void(bool urgent)> on_change) {
    on_change_ = std::move(on_change);
  }

  // Takes what was decided, in the engine's thread; must not block. Set before
  // Start.
  void set_on_events(std::function<void(std::vector<core::Event>)> on_events) {
    on_events_ = std::move(on_events);
  }

  // Takes what has changed (Core::TakeChanges), in the engine's thread, before
  // anything that follows from it is done; must not block. Set before Start.
  void set_on_changes(
      std::function<void(const std::vector<core::Change>&)> on_changes) {
    on_changes_ = std::move(on_changes);
  }

  void Start(core::SessionPort& sessions, core::MemoryPort& memory,
             core::PlannerPort& planner, core::OperatorPort& operators);

  // Takes the inputs posted so far, and ends the thread. Later inputs are
  // dropped.
  void Stop();

  // Whether the thread takes an input within this time. Not from that thread.
  bool AnswersWithin(absl::Duration time);

  void Post(core::Input input) override;
  core::Status GetStatus() const override;
  std::vector<core::WhyAnswer> Why(const std::string& job) const override;
  core::KeptState GetKept() const;

 private:
  void Run();
  // Waits for inputs or the core's deadline. False when stopped and empty.
  bool Await(std::vector<core::Input>* inputs);
  void StepAll(const std::vector<core::Input>& inputs);
  void Dispatch(std::vector<core::Action> actions);

  const Clock& clock_;
  core::SessionPort* sessions_ = nullptr;
  core::MemoryPort* memory_ = nullptr;
  core::PlannerPort* planner_ = nullptr;
  core::OperatorPort* operators_ = nullptr;
  std::function<void(bool urgent)> on_change_;
  std::function<void(std::vector<core::Event>)> on_events_;
  std::function<void(const std::vector<core::Change>&)> on_changes_;
  std::thread thread_;

  mutable absl::Mutex core_mutex_;
  std::unique_ptr<core::Core> core_ ABSL_GUARDED_BY(core_mutex_);
  core::DecisionHistogram decisions_ ABSL_GUARDED_BY(core_mutex_);

  absl::Mutex queue_mutex_;
  std::vector<core::Input> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;
  uint64_t posted_ ABSL_GUARDED_BY(queue_mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(queue_mutex_) = 0;  // And dealt with.
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_ENGINE_H_
