#include "daemon/core/state.h"

#include <utility>

#include "common/base/check.h"
#include "daemon/core/kept/kept_state.h"

namespace mets::core {
namespace {

// Of one Step, at most; together below 1 KiB, which malloc gives fast.
constexpr size_t kUsualActions = 6;

TurnOptions TurnOptionsOf(const CoreConfig& config) {
  TurnOptions options;
  for (const DeviceConfig& device : config.devices) {
    options.devices.push_back(
        {device.name, device.pool, device.bus_bytes_per_second});
  }
  options.moving_share = config.moving_share;
  options.max_wait = config.max_wait;
  options.order_timeout = config.order_timeout;
  options.fixed_quantum = config.fixed_quantum;
  return options;
}

}  // namespace

State::State(CoreConfig core_config,
             std::unique_ptr<VictimPolicy> victim_policy)
    : config(std::move(core_config)),
      policy(std::move(victim_policy)),
      changes(config.changes),
      turns(TurnOptionsOf(config)),
      sessions(config.devices.size()),
      swap(config.swap_limit, &changes) {
  METS_CHECK(!config.devices.empty()) << "a core without devices";
  METS_CHECK(policy != nullptr) << "a core without policy";
  devices.reserve(config.devices.size());
  for (const DeviceConfig& device : config.devices) {
    devices.emplace_back(device, config, policy.get(), &changes,
                         devices.size());
  }
}

void State::Send(Action action) {
  if (actions.empty()) actions.reserve(kUsualActions);
  actions.push_back(std::move(action));
}

Device* State::FindDevice(const std::string& name, size_t* index) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!name.empty() && devices[i].config.name != name) continue;
    *index = i;
    return &devices[i];
  }
  return nullptr;
}

Session* State::Speaker(SessionId id) {
  Session* session = sessions.Find(id);
  return session != nullptr && session->connected() ? session : nullptr;
}

bool State::JobActive(const Job& job) const {
  return now - job.last_active < kIdleAfter;
}

bool State::Recovering() {
  if (!may_recover || now >= grace_end()) return false;
  for (const auto& [id, session] : sessions.all()) {
    if (session.presence == Presence::kExpected || session.recovering) {
      return true;
    }
  }
  may_recover = false;
  return false;
}

void State::StirAll() {
  for (Device& device : devices) device.stir = true;
}

void State::UpdateVictim(const Session& session, size_t device,
                         Buffer& buffer) {
  devices[device].victims.Update(session, buffer, now);
}

void State::EraseBuffer(Session& session, size_t device, BufferId id) {
  BufferTable& buffers = session.holdings[device].buffers;
  Buffer* buffer = buffers.Find(id);
  if (buffer == nullptr) return;
  devices[device].victims.Remove(session, *buffer);
  buffers.Erase(id);
}

void State::RemoveSession(Session& session) {
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].victims.RemoveAll(session.id, session.holdings[i].buffers);
    devices[i].cachers.erase(session.id);
    devices[i].pacer.Forget(session.id);
  }
  changes.Add(Gone<SessionId>{session.id});
  sessions.Remove(session.id, now);
}

VictimOwner State::DescribeOwner(const Session& session, size_t device) const {
  VictimOwner owner;
  owner.session = &session;
  owner.takes_part = session.serves() &&
                     !orders.FindKind(session.id, OrderKind::kEvict, device);
  owner.priority = session.job->priority;
  owner.weight = session.job->weight;
  owner.not_before = session.not_before;
  owner.held_may_leave = session.holdings[device].waits_at_gate;
  return owner;
}

void State::RefreshSession(SessionId id) {
  const Session* session = sessions.Find(id);
  if (session == nullptr) return;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (session->holdings[i].cached.is_zero()) {
      devices[i].cachers.erase(id);
    } else {
      devices[i].cachers.insert(id);
    }
  }
  RefreshVictims(id);
}

void State::RefreshVictims(SessionId id) {
  Session* session = sessions.Find(id);
  if (session == nullptr) return;
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].victims.SetOwner(DescribeOwner(*session, i));
  }
}

void State::TellSession(SessionId id) {
  Session* session = changes.on() ? sessions.Find(id) : nullptr;
  if (session == nullptr) return;
  KeptSession now = KeptOf(*session);
  if (now == session->told) return;
  session->told = now;
  changes.Add(std::move(now));
}

void State::WatchLimit(const Job& job) {
  if (job.limit.is_zero()) return;
  over_limit.insert({job.domain, job.name});
  StirAll();
}

void State::Note(Event event) {
  if (event.time == absl::InfinitePast()) event.time = now;
  events.push_back(std::move(event));
}

}  // namespace mets::core
