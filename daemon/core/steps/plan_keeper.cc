#include "daemon/core/steps/plan_keeper.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "daemon/core/events/notes.h"
#include "daemon/core/moves/paced_moves.h"
#include "daemon/core/steps/plan_slots.h"

namespace mets::core {
namespace {

// A step is planned again after this long, at the earliest.
constexpr absl::Duration kPlanAgain = absl::Seconds(2);
// Other needs than the step's, and pieces that fit nowhere: of the budget.
constexpr int kPercentSpare = 2;
// A plan stays while the memory for it has changed by less, of the old.
constexpr int kPercentChange = 5;
// A plan ends when its class has moved so much more than it may beside a higher
// class that nothing would be ordered for it for so long.
constexpr absl::Duration kMostDebt = absl::Milliseconds(500);
// With more of both together a plan would take seconds to make.
constexpr uint64_t kMostOpsTimesBuffers = uint64_t{1} << 26;
// A message has room for so many.
constexpr size_t kMostAbsences = 8192;

bool Near(Bytes a, Bytes b) {
  return std::max(a - b, b - a) * 100 <= b * kPercentChange;
}

// What the session has on the device besides the buffers of its step: those
// that are none of it, and those that have a successor already (as what is
// loaded a step ahead), but live. Not those that the step is replacing just
// now: its program has them.
Bytes Besides(const Holding& holding) {
  Bytes sum;
  std::set<uint32_t> seen;
  for (const auto& [id, buffer] : holding.buffers.all()) {
    if (buffer.logical == 0 ? buffer.state == BufferState::kResident
                            : !seen.insert(buffer.logical).second) {
      sum += buffer.size;
    }
  }
  return std::min(sum, holding.steps.Beside().value_or(sum));
}

// Bytes a second, out and in.
double MovesOf(const steps::StepPlan& plan) {
  if (plan.duration <= absl::ZeroDuration()) return 0;
  return static_cast<double>((plan.evicted + plan.restored).count()) /
         absl::ToDoubleSeconds(plan.duration);
}

std::shared_ptr<const steps::StepProgram> Rounded(
    const steps::StepProgram& program, Bytes unit) {
  auto rounded = std::make_shared<steps::StepProgram>(program);
  for (steps::StepBuffer& buffer : rounded->buffers) {
    buffer.size = buffer.size.RoundUpTo(unit);
  }
  return rounded;
}

}  // namespace

// While jobs take turns, one at a time may have everything.
Bytes PlanKeeper::Budget(const Session& session, size_t index) const {
  const Device& device = state_.devices[index];
  Bytes budget = device.config.pool - device.shares.bytes();
  Bytes limit = session.job->limit - session.holdings[index].shared;
  for (const auto& [id, other] : state_.sessions.all()) {
    if (id == session.id) continue;
    const Holding& holding = other.holdings[index];
    if (other.job == session.job) limit -= holding.resident();
    const bool waits = state_.turns.mode(index) != SharingMode::kFree ||
                       !state_.JobActive(*other.job);
    const Bytes own = holding.own() - holding.cached;
    budget -= waits ? std::min(holding.buffers.held(), own) : own;
  }
  if (!session.job->limit.is_zero()) budget = std::min(budget, limit);
  budget -= Besides(session.holdings[index]);
  return Bytes(budget.count() / 100 * (100 - kPercentSpare));
}

void PlanKeeper::Consider(Session& session, size_t index) {
  Holding& holding = session.holdings[index];
  PlanBook& book = holding.plan;
  if (!state_.config.plans || !session.serves() || !holding.attached ||
      book.task != 0 || book.order != book.answered) {
    return;
  }
  if (book.made.has_value()) {
    SendMade(session, index);
    return;
  }
  const steps::StepProgram* program = holding.steps.program();
  const Bytes budget = Budget(session, index);
  const Bytes unit = state_.devices[index].config.chunk_classes.front();
  const bool same = book.version == holding.steps.version();
  if (program == nullptr) return;  // It may come back.
  const int priority = session.job->priority;
  if (book.order.ok() &&
      MovesFrom(state_, index, priority) > state_.now + kMostDebt) {
    HoldBack(session, index);
    return;
  }
  if (holding.steps.Peak(unit) <= budget) {
    if (book.order.ok()) EndPlan(session, index);
    return;
  }
  const bool goes_on =
      book.held_back && book.rate <= MovesPerSecond(state_, index, priority);
  if (same && Near(budget, book.budget) && !goes_on) return;
  if (same && state_.now < book.not_before) return;
  if (budget <= Bytes() ||
      program->ops.size() * uint64_t{program->buffers.size()} >
          kMostOpsTimesBuffers) {
    return;
  }
  Ask(session, index, budget);
}

void PlanKeeper::Ask(Session& session, size_t index, Bytes budget) {
  const DeviceConfig& device = state_.devices[index].config;
  Holding& holding = session.holdings[index];
  holding.plan.task = ++last_task_;
  holding.plan.version = holding.steps.version();
  holding.plan.budget = budget;
  holding.plan.not_before = state_.now + kPlanAgain;
  holding.plan.held_back = false;
  state_.Send(
      PlanTask{session.id, device.name, last_task_,
               Rounded(*holding.steps.program(), device.chunk_classes.front()),
               budget, device.bus_bytes_per_second, device.moves});
}

void PlanKeeper::OnMade(const PlanMade& input) {
  size_t index = 0;
  Session* session = state_.Speaker(input.session);
  if (session == nullptr ||
      state_.FindDevice(input.device, &index) == nullptr) {
    return;
  }
  PlanBook& book = session->holdings[index].plan;
  if (book.task != input.number) return;
  book.task = 0;
  if (!input.plan.ok() || input.plan->absences.empty() ||
      input.plan->absences.size() > kMostAbsences) {
    if (book.order.ok()) EndPlan(*session, index);
    return;
  }
  book.made = *input.plan;
  SendMade(*session, index);
}

void PlanKeeper::SendMade(Session& session, size_t index) {
  Holding& holding = session.holdings[index];
  const bool stale =
      !session.serves() || holding.plan.version != holding.steps.version();
  // It may come back.
  if (!stale && holding.steps.program() == nullptr) return;
  PlanOrder action;
  if (!stale && !TakeSlots(session, index, *holding.plan.made, &action)) {
    waiting_.emplace(session.id, index);
    return;
  }
  waiting_.erase({session.id, index});
  if (!stale) {
    holding.plan.rate = MovesOf(*holding.plan.made);
    action.plan = *holding.plan.made;
    SendPlan(session, index, std::move(action));
  }
  holding.plan.made.reset();
}

bool PlanKeeper::TakeSlots(Session& session, size_t index,
                           const steps::StepPlan& plan, PlanOrder* action) {
  const steps::StepProgram& program = *session.holdings[index].steps.program();
  const Bytes unit = state_.devices[index].config.chunk_classes.front();
  std::set<uint32_t> buffers;
  Bytes sum;
  for (const steps::Absence& absence : plan.absences) {
    if (buffers.insert(absence.buffer).second) {
      sum += program.buffers[absence.buffer].size.RoundUpTo(unit);
    }
  }
  for (uint32_t b : buffers) {
    const auto slot = state_.swap.Allocate(
        session.domain, program.buffers[b].size.RoundUpTo(unit),
        {session.id, index, BufferId()});
    if (!slot) break;
    action->places.push_back({b, state_.swap.Find(*slot)->slot});
  }
  if (action->places.size() == buffers.size()) return true;
  for (const PlanOrder::Place& place : action->places) {
    state_.swap.Free(place.slot.id);
  }
  swap_.Grow({session.domain, sum, sum}, /*may_take=*/false);
  return false;
}

void PlanKeeper::SendPlan(Session& session, size_t index, PlanOrder action) {
  Order order;
  order.session = session.id;
  order.kind = OrderKind::kPlan;
  order.device = index;
  order.due = state_.now + state_.config.order_timeout;
  action.session = session.id;
  action.device = state_.devices[index].config.name;
  action.order = state_.orders.Add(std::move(order)).id;
  PlanBook& book = session.holdings[index].plan;
  book.order = action.order;
  for (const PlanOrder::Place& place : action.places) {
    book.slots[place.slot.id] = {action.order, BufferId()};
    swap_.Introduce(place.slot, session, &action.new_to_session);
  }
  NotePlan(state_, session, index, action);
  state_.Send(std::move(action));
}

void PlanKeeper::EndPlan(Session& session, size_t index) {
  PlanBook& book = session.holdings[index].plan;
  book.budget = Bytes();
  SendPlan(session, index, PlanOrder());
}

void PlanKeeper::HoldBack(Session& session, size_t index) {
  PlanBook& book = session.holdings[index].plan;
  book.held_back = true;
  SendPlan(session, index, PlanOrder());
}

void PlanKeeper::OnAnswered(Session& session, const Order& order, bool failed) {
  Holding& holding = session.holdings[order.device];
  PlanBook& book = holding.plan;
  if (book.order != order.id) return;
  const bool follows =
      !failed &&
      std::any_of(book.slots.begin(), book.slots.end(), [&](const auto& slot) {
        return slot.second.plan == order.id;
      });
  if (!follows) book.order = OrderId();
  book.answered = book.order;
  FreeUnusedSlots(state_, holding, book.order);
}

void PlanKeeper::OnSwapSpace() {
  for (const auto& [id, index] : std::exchange(waiting_, {})) {
    Session* session = state_.sessions.Find(id);
    if (session == nullptr || !session->holdings[index].plan.made) continue;
    SendMade(*session, index);
  }
}

}  // namespace mets::core
