#include "daemon/core/core.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "daemon/core/chunks/idle_release.h"
#include "daemon/core/chunks/retirement.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/invariants.h"
#include "daemon/core/kept/take_over.h"
#include "daemon/core/operating/job_emptier.h"
#include "daemon/core/operating/operator_intake.h"
#include "daemon/core/operating/wait_notices.h"
#include "daemon/core/reports/why.h"
#include "daemon/core/requests/request_server.h"
#include "daemon/core/scheduling/gate_keeper.h"
#include "daemon/core/sessions/report_intake.h"
#include "daemon/core/sessions/session_intake.h"
#include "daemon/core/sessions/snapshot_intake.h"
#include "daemon/core/shares/share_intake.h"
#include "daemon/core/state.h"
#include "daemon/core/status_report.h"
#include "daemon/core/steps/plan_keeper.h"
#include "daemon/core/steps/step_intake.h"
#include "daemon/core/swap/swap_space.h"
#include "daemon/core/tight_signal.h"
#include "daemon/core/victims/evictor.h"
#include "daemon/core/victims/reclaimer.h"

namespace mets::core {

class Core::Impl {
 public:
  Impl(CoreConfig config, std::unique_ptr<VictimPolicy> policy)
      : state_(std::move(config), std::move(policy)),
        retirement_(&state_),
        swap_(&state_, &retirement_),
        evictor_(&state_, &swap_),
        reclaimer_(&state_, &evictor_),
        server_(&state_, &reclaimer_, &retirement_),
        plans_(&state_, &swap_),
        reports_(&state_, &swap_, &plans_),
        sessions_(&state_, &retirement_),
        shares_(&state_),
        snapshots_(&state_, &reports_, &retirement_),
        steps_(&state_),
        gates_(&state_, &reclaimer_),
        emptier_(&state_, &reclaimer_, &swap_),
        operator_(&state_, &emptier_),
        notices_(&state_),
        idle_(&state_, &retirement_) {}

  std::vector<Action> Step(absl::Time now, const Input& input) {
    METS_CHECK(now >= state_.now) << "time goes back";
    if (state_.started == absl::InfinitePast()) state_.started = now;
    state_.now = now;
    std::visit(
        [this](const auto& i) {
          Take(i);
          if (const SessionId* session = SessionOf(i, 0)) {
            state_.RefreshSession(*session);
            state_.TellSession(*session);
          }
        },
        input);
    if (MattersToJobs(input)) {
      for (const auto& [id, session] : state_.sessions.all()) {
        state_.TellSession(id);
      }
    }
    gates_.Advance(MattersToTurns(input));
    for (DeviceReady& ready : std::exchange(state_.ready, {})) {
      state_.Send(std::move(ready));
    }
    Advance();
    return std::exchange(state_.actions, {});
  }

  absl::Time next_deadline() const {
    absl::Time next =
        std::min({state_.orders.NextDue(), state_.tight_end,
                  state_.sessions.NextDrop(kKeepJob), gates_.next_deadline(),
                  notices_.next_deadline(), idle_.next_deadline()});
    for (const Device& device : state_.devices) {
      next = std::min({next, device.retry_at, device.queue.NextDeadline()});
    }
    return next;
  }

  std::vector<Event> TakeEvents() { return std::exchange(state_.events, {}); }

  std::vector<Change> TakeChanges() { return state_.changes.Take(); }

  absl::Status TakeOver(absl::Time now, const KeptState& kept) {
    METS_CHECK(state_.started == absl::InfinitePast()) << "it has begun";
    state_.now = state_.started = now;
    METS_RETURN_IF_ERROR(core::TakeOver(kept, &state_));
    const absl::Status sound = CheckState(state_);
    return sound.ok() ? sound : absl::FailedPreconditionError(sound.message());
  }

  const State& state() const { return state_; }

 private:
  // The session that an input comes from or concerns; null: none.
  template <typename Input>
  static auto SessionOf(const Input& input, int) -> decltype(&input.session) {
    return &input.session;
  }
  template <typename Input>
  static const SessionId* SessionOf(const Input&, long) {
    return nullptr;
  }

  // Whether it may change who computes, or what they have.
  static bool MattersToTurns(const Input& input) {
    return std::holds_alternative<BufferChanges>(input) ||
           std::holds_alternative<Snapshot>(input) ||
           std::holds_alternative<PublishShare>(input) ||
           std::holds_alternative<DetachShare>(input) ||
           std::holds_alternative<AttachDevice>(input) ||
           std::holds_alternative<PauseJob>(input) ||
           std::holds_alternative<SessionLost>(input) ||
           std::holds_alternative<SessionResumed>(input) ||
           std::holds_alternative<SessionEnded>(input);
  }

  // Whether it may change what jobs may have.
  static bool MattersToJobs(const Input& input) {
    return std::holds_alternative<SessionOpened>(input) ||
           std::holds_alternative<SetJobLimit>(input) ||
           std::holds_alternative<RestoreSettings>(input);
  }

  void Take(const SessionOpened& i) { sessions_.OnOpened(i); }
  void Take(const SessionLost& i) { sessions_.OnLost(i); }
  void Take(const SessionResumed& i) { sessions_.OnResumed(i); }
  void Take(const SessionEnded& i) { sessions_.OnEnded(i); }
  void Take(const ExpectSession& i) { sessions_.OnExpected(i); }
  void Take(const ExpectedSessionGone& i) { sessions_.OnExpectedGone(i); }
  void Take(const AttachDevice& i) { sessions_.OnAttach(i); }
  void Take(const StepSeen& i) { steps_.OnSeen(i); }
  void Take(const StepProgress& i) { steps_.OnProgress(i); }
  void Take(const StepNeed& i) {
    steps_.OnNeed(i);
    gates_.OnNeed(i);
  }
  void Take(const TurnWanted& i) { gates_.OnWanted(i); }
  void Take(const TurnEnded& i) { gates_.OnEnded(i); }
  void Take(const SetJobLimit& i) { sessions_.OnSetJobLimit(i); }
  void Take(const DrainDevice& i) { operator_.OnDrain(i); }
  void Take(const PauseJob& i) { operator_.OnPause(i); }
  void Take(const EvictJob& i) { operator_.OnEvict(i); }
  void Take(const KillJob& i) { operator_.OnKill(i); }
  void Take(const RestoreSettings& i) { operator_.OnRestore(i); }
  void Take(const Stop&) { sessions_.OnStop(); }
  void Take(const Acquire& i) { server_.OnAcquire(i); }
  void Take(const Cancel& i) { server_.OnCancel(i); }
  void Take(const ChunkCreated& i) { server_.OnChunkCreated(i); }
  void Take(const Release& i) { reports_.OnRelease(i); }
  void Take(const OrderDone& i) { reports_.OnOrderDone(i); }
  void Take(const BufferChanges& i) { reports_.OnBufferChanges(i); }
  void Take(const Snapshot& i) { snapshots_.OnSnapshot(i); }
  void Take(const PublishShare& i) { shares_.OnPublish(i); }
  void Take(const AttachShare& i) { shares_.OnAttach(i); }
  void Take(const DetachShare& i) { shares_.OnDetach(i); }
  void Take(const Forgotten& i) { retirement_.OnForgotten(i); }
  void Take(const ChunkDestroyed& i) { retirement_.OnChunkDestroyed(i); }
  void Take(const ExtentDestroyed& i) { retirement_.OnExtentDestroyed(i); }
  void Take(const ExtentCreated& i) {
    swap_.OnExtentCreated(i);
    plans_.OnSwapSpace();
  }
  void Take(const PlanMade& i) { plans_.OnMade(i); }
  void Take(const Tick&) {}

  // What follows every input: time that has passed, and what has become
  // possible.
  void Advance() {
    server_.DenyOverdueRequests();
    UpdateResponsiveness();
    state_.sessions.DropEmptyJobs(state_.now, kKeepJob, kKeepJobs);
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < state_.devices.size(); ++i) {
        Device& device = state_.devices[i];
        if (!device.stir && device.retry_at > state_.now) continue;
        device.stir = false;
        server_.Serve(i);
        again |= device.stir;
      }
    }
    reclaimer_.EnforceLoweredLimits();
    emptier_.Advance();
    notices_.Advance();
    idle_.Advance();
    retirement_.Flush();
    SignalTight(state_);
  }

  void UpdateResponsiveness() {
    for (SessionId id : state_.orders.MarkLate(state_.now)) {
      Session& session = *state_.sessions.Find(id);
      session.unresponsive = true;
      NoteSession(state_, EventKind::kUnresponsive, session);
      state_.unresponsive.insert(id);
      state_.RefreshVictims(id);
      state_.StirAll();
    }
    for (auto it = state_.unresponsive.begin();
         it != state_.unresponsive.end();) {
      Session* session = state_.sessions.Find(*it);
      const bool still = session != nullptr && session->unresponsive;
      if (still && state_.orders.HasLate(*it)) {
        ++it;
        continue;
      }
      if (still) {
        session->unresponsive = false;
        NoteSession(state_, EventKind::kResponds, *session);
        state_.RefreshVictims(*it);
        state_.StirAll();
      }
      it = state_.unresponsive.erase(it);
    }
  }

  State state_;
  Retirement retirement_;
  SwapSpace swap_;
  Evictor evictor_;
  Reclaimer reclaimer_;
  RequestServer server_;
  PlanKeeper plans_;
  ReportIntake reports_;
  SessionIntake sessions_;
  ShareIntake shares_;
  SnapshotIntake snapshots_;
  StepIntake steps_;
  GateKeeper gates_;
  JobEmptier emptier_;
  OperatorIntake operator_;
  WaitNotices notices_;
  IdleRelease idle_;
};

Core::Core(CoreConfig config, std::unique_ptr<VictimPolicy> policy)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(policy))) {}

Core::~Core() = default;

std::vector<Action> Core::Step(absl::Time now, const Input& input) {
  return impl_->Step(now, input);
}

std::vector<Event> Core::TakeEvents() { return impl_->TakeEvents(); }

std::vector<Change> Core::TakeChanges() { return impl_->TakeChanges(); }

KeptState Core::GetKept() const { return KeptOf(impl_->state()); }

absl::Status Core::TakeOver(absl::Time now, const KeptState& kept) {
  return impl_->TakeOver(now, kept);
}

absl::Time Core::next_deadline() const { return impl_->next_deadline(); }

Status Core::GetStatus() const { return BuildStatus(impl_->state()); }

std::vector<WhyAnswer> Core::Why(const std::string& job) const {
  return WhyOf(impl_->state(), job);
}

absl::Status Core::CheckInvariants() const {
  return CheckState(impl_->state());
}

}  // namespace mets::core
