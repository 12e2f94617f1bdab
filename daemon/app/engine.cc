#include "daemon/app/engine.h"

#include <utility>
#include <variant>

namespace mets::app {
namespace {

// Inputs after which a session may hold more or less than before.
bool ChangesHoldings(const core::Input& input) {
  return std::holds_alternative<core::SessionOpened>(input) ||
         std::holds_alternative<core::SessionEnded>(input) ||
         std::holds_alternative<core::ExpectedSessionGone>(input) ||
         std::holds_alternative<core::Release>(input) ||
         std::holds_alternative<core::AttachShare>(input) ||
         std::holds_alternative<core::DetachShare>(input) ||
         std::holds_alternative<core::Snapshot>(input) ||
         std::holds_alternative<core::OrderDone>(input);
}

// Inputs by which operators change what holds until they say otherwise.
bool ChangesSettings(const core::Input& input) {
  return std::holds_alternative<core::DrainDevice>(input) ||
         std::holds_alternative<core::PauseJob>(input) ||
         std::holds_alternative<core::SetJobLimit>(input);
}

bool IsGrant(const core::Action& action) {
  const auto* session = std::get_if<core::SessionAction>(&action);
  return session != nullptr && std::holds_alternative<core::Grant>(*session);
}

}  // namespace

Engine::Engine(std::unique_ptr<core::Core> core, const Clock& clock)
    : clock_(clock), core_(std::move(core)) {}

Engine::~Engine() { Stop(); }

void Engine::Start(core::SessionPort& sessions, core::MemoryPort& memory,
                   core::PlannerPort& planner, core::OperatorPort& operators) {
  sessions_ = &sessions;
  memory_ = &memory;
  planner_ = &planner;
  operators_ = &operators;
  thread_ = std::thread([this] { Run(); });
}

void Engine::Stop() {
  {
    absl::MutexLock lock(&queue_mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Engine::Post(core::Input input) {
  absl::MutexLock lock(&queue_mutex_);
  if (stopping_) return;
  queue_.push_back(std::move(input));
  ++posted_;
}

bool Engine::AnswersWithin(absl::Duration time) {
  Post(core::Tick{});
  absl::MutexLock lock(&queue_mutex_);
  const uint64_t mine = posted_;
  const auto taken = [this, mine]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                         queue_mutex_) { return taken_ >= mine; };
  return queue_mutex_.AwaitWithTimeout(absl::Condition(&taken), time);
}

core::Status Engine::GetStatus() const {
  absl::MutexLock lock(&core_mutex_);
  core::Status status = core_->GetStatus();
  status.decisions = decisions_;
  return status;
}

std::vector<core::WhyAnswer> Engine::Why(const std::string& job) const {
  absl::MutexLock lock(&core_mutex_);
  return core_->Why(job);
}

core::KeptState Engine::GetKept() const {
  absl::MutexLock lock(&core_mutex_);
  return core_->GetKept();
}

bool Engine::Await(std::vector<core::Input>* inputs) {
  absl::Duration wait;
  {
    absl::MutexLock lock(&core_mutex_);
    wait = core_->next_deadline() - clock_.Now();
  }
  absl::MutexLock lock(&queue_mutex_);
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mutex_) {
    return stopping_ || !queue_.empty();
  };
  if (wait > absl::ZeroDuration()) {
    queue_mutex_.AwaitWithTimeout(absl::Condition(&awake), wait);
  }
  inputs->swap(queue_);
  return !stopping_ || !inputs->empty();
}

void Engine::Run() {
  std::vector<core::Input> inputs;
  while (Await(&inputs)) {
    StepAll(inputs);
    absl::MutexLock lock(&queue_mutex_);
    taken_ += inputs.size();
    inputs.clear();
  }
}

void Engine::StepAll(const std::vector<core::Input>& inputs) {
  bool changed = false;
  bool urgent = false;
  const auto step = [&](const core::Input& input) {
    std::vector<core::Action> actions;
    std::vector<core::Event> events;
    std::vector<core::Change> changes;
    {
      absl::MutexLock lock(&core_mutex_);
      const absl::Time begin = clock_.Now();
      actions = core_->Step(begin, input);
      events = core_->TakeEvents();
      changes = core_->TakeChanges();
      decisions_.Add(clock_.Now() - begin);
    }
    changed = changed || ChangesHoldings(input) || ChangesSettings(input);
    urgent = urgent || std::holds_alternative<core::SessionOpened>(input) ||
             ChangesSettings(input);
    for (const core::Action& action : actions) {
      changed = changed || IsGrant(action);
    }
    if (!changes.empty()) on_changes_(changes);
    Dispatch(std::move(actions));
    if (!events.empty() && on_events_) on_events_(std::move(events));
  };
  for (const core::Input& input : inputs) step(input);
  bool due;
  {
    absl::MutexLock lock(&core_mutex_);
    due = core_->next_deadline() <= clock_.Now();
  }
  if (due) step(core::Tick{});
  if (changed && on_change_) on_change_(urgent);
}

void Engine::Dispatch(std::vector<core::Action> actions) {
  for (core::Action& action : actions) {
    if (auto* session = std::get_if<core::SessionAction>(&action)) {
      sessions_->Perform(std::move(*session));
    } else if (auto* memory = std::get_if<core::MemoryAction>(&action)) {
      memory_->Perform(std::move(*memory));
    } else if (auto* task = std::get_if<core::PlanTask>(&action)) {
      planner_->Perform(std::move(*task));
    } else {
      operators_->Perform(std::get<core::OperatorAction>(std::move(action)));
    }
  }
}

}  // namespace mets::app
