// State: everything the core knows. Its parts change it together, within one
// Step.
#ifndef METS_DAEMON_CORE_STATE_H_
#define METS_DAEMON_CORE_STATE_H_

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/chunks/chunk_ledger.h"
#include "daemon/core/costs/handover_meter.h"
#include "daemon/core/events/event.h"
#include "daemon/core/id_counter.h"
#include "daemon/core/kept/change.h"
#include "daemon/core/moves/move_pacer.h"
#include "daemon/core/requests/overdraft.h"
#include "daemon/core/requests/request_queue.h"
#include "daemon/core/scheduling/turn_scheduler.h"
#include "daemon/core/sessions/order_book.h"
#include "daemon/core/sessions/session_table.h"
#include "daemon/core/shares/share_book.h"
#include "daemon/core/swap/swap_book.h"
#include "daemon/core/types.h"
#include "daemon/core/victims/victim_index.h"
#include "daemon/core/victims/victim_policy.h"

namespace mets::core {

// Why a device's head request could not be served at the last attempt.
enum class Obstacle {
  kNone,
  kSwapFull,   // Buffers could leave, but swap space has no room.
  kPinned,     // What is left is pinned, held or fixed.
  kProtected,  // What is left belongs to active jobs' guarantees.
  kSilent,     // What is left belongs to sessions that do not answer...
  kUntold,     // ...or that have not reported their buffers yet.
};

struct Device {
  Device(const DeviceConfig& device_config, const CoreConfig& core,
         const VictimPolicy* policy, ChangeLog* changes, size_t index)
      : config(device_config),
        ledger(device_config.pool, device_config.chunk_classes, changes, index),
        shares(changes, index),
        victims(policy, device_config.bus_bytes_per_second),
        pacer(core.interference_bound, device_config.bus_bytes_per_second) {}

  DeviceConfig config;
  bool drained = false;  // By the operator: it takes no new jobs.
  ChunkLedger ledger;
  ShareBook shares;
  VictimIndex victims;
  MovePacer pacer;
  HandoverMeter handover;
  // Bytes to and from swap space, as sessions have reported. Not Bytes: a sum
  // of what anybody may claim.
  double copied_out = 0;
  double copied_in = 0;
  RequestQueue queue;
  Overdraft overdraft;
  absl::Time tight_until = absl::InfinitePast();
  std::set<SessionId> cachers;  // Sessions that have cached memory.
  // Something may have become possible: serve the queue in this Step.
  bool stir = false;
  // When to try again what was not possible.
  absl::Time retry_at = absl::InfiniteFuture();
  // No search for victims before: the last one found none.
  absl::Time search_from = absl::InfinitePast();
  Obstacle obstacle = Obstacle::kNone;
  // The driver could not create a chunk: why (empty once it can), and until
  // when not to ask again.
  absl::Time create_from = absl::InfinitePast();
  std::string create_error;
};

// Not thread-safe. Owned by Core; its parts borrow it.
struct State {
  State(CoreConfig core_config, std::unique_ptr<VictimPolicy> victim_policy);

  // Queues an action.
  void Send(Action action);

  // The device called `name` (the first when empty); null when there is none.
  Device* FindDevice(const std::string& name, size_t* index);
  // The session, if what it says counts: connected, not refused.
  Session* Speaker(SessionId id);
  bool JobActive(const Job& job) const;
  // True while sessions of an earlier daemon may still come back. Looks at all
  // sessions only while some may.
  bool Recovering();
  absl::Time grace_end() const { return started + config.recovery_grace; }
  // Something may have become possible on every device.
  void StirAll();
  // A buffer has changed in a way that may matter to who leaves.
  void UpdateVictim(const Session& session, size_t device, Buffer& buffer);
  // Removes a session that holds nothing any more from the table.
  void RemoveSession(Session& session);
  void EraseBuffer(Session& session, size_t device, BufferId buffer);
  // Whenever a session, or what it holds, may have changed. Nothing happens
  // when there is no such session.
  void RefreshSession(SessionId session);
  // A session has changed so: whether it serves, its orders, its job's
  // priority, not_before. Nothing happens when there is no such session.
  void RefreshVictims(SessionId session);
  // What the victim index should know of a session.
  VictimOwner DescribeOwner(const Session& session, size_t device) const;
  // What a successor would have to know of a session may have changed. Nothing
  // happens when there is no such session.
  void TellSession(SessionId session);
  // The job has more than its limit and should lose the rest.
  void WatchLimit(const Job& job);
  // For Core::TakeEvents. REQUIRES: config.events. It was now, unless the
  // event says otherwise.
  void Note(Event event);

  const CoreConfig config;
  const std::unique_ptr<VictimPolicy> policy;
  absl::Time now = absl::InfinitePast();
  absl::Time started = absl::InfinitePast();
  ChangeLog changes;
  uint64_t succession = 0;  // See KeptIds.
  std::vector<Device> devices;
  TurnScheduler turns;
  bool turns_stir = false;  // Turns may change in this Step.
  SessionTable sessions;
  OrderBook orders;
  SwapBook swap;
  IdCounter<ChunkId> chunk_ids;
  IdCounter<ShareId> share_ids;
  // Sessions that may be unresponsive.
  std::set<SessionId> unresponsive;
  // Sessions of an earlier daemon may be expected, or on their way back.
  bool may_recover = false;
  // Somebody may have to be told that memory is short, or no longer.
  bool tight_stir = false;
  absl::Time tight_end = absl::InfiniteFuture();  // The next end, or earlier.
  // Jobs to bring below their limit.
  std::set<std::pair<DomainId, std::string>> over_limit;
  absl::Time swap_grow_from = absl::InfinitePast();  // As create_from.
  std::string swap_error;
  std::vector<Action> actions;
  std::vector<Event> events;
  // Sent behind the gates' orders of this Step: a session must not compute
  // before it knows that its gate is closed.
  std::vector<DeviceReady> ready;
};

// How long after the last shortage a device stays tight.
inline constexpr absl::Duration kTightFor = absl::Seconds(2);
// A job that did nothing for this long is idle: its guarantee rests.
inline constexpr absl::Duration kIdleAfter = absl::Seconds(1);
// How often what was not possible is tried again.
inline constexpr absl::Duration kRetryAfter = absl::Milliseconds(10);
// How long totals of a job without sessions are kept.
inline constexpr absl::Duration kKeepJob = absl::Seconds(60);
// And of how many of a domain: who starts jobs by the thousand fills no scrape.
inline constexpr size_t kKeepJobs = 256;

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STATE_H_
