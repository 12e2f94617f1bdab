// SessionTable: sessions, and the jobs they form.
#ifndef METS_DAEMON_CORE_SESSIONS_SESSION_TABLE_H_
#define METS_DAEMON_CORE_SESSIONS_SESSION_TABLE_H_

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/costs/duration_histogram.h"
#include "daemon/core/costs/failure.h"
#include "daemon/core/costs/step_pace.h"
#include "daemon/core/events/move_burst.h"
#include "daemon/core/kept/change.h"
#include "daemon/core/sessions/buffer_table.h"
#include "daemon/core/steps/plan_book.h"
#include "daemon/core/steps/step_book.h"
#include "daemon/core/types.h"

namespace mets::core {

// What a session has on one device.
struct Holding {
  bool attached = false;
  // Its program announces no ops: what it touches is held.
  bool asked = false;  // For memory, ever.
  bool gated = false;
  // It is gated, its gate is closed, nothing of it runs, and a thread waits
  // there: what is held may leave. State::RefreshVictims follows each change.
  bool waits_at_gate = false;
  Bytes chunk_bytes;          // The ledger knows which chunks they are.
  std::vector<ChunkId> lent;  // See lending.h. Some may be gone since.
  Bytes orphan;               // In chunks of earlier epochs.
  Bytes shared;               // In shares for which it pays.
  Bytes orphan_swap;          // In extents of earlier epochs.
  Bytes cached;               // Reported; never more than own().
  Bytes pinned;               // Reported.
  Totals totals;
  absl::Time told_totals = absl::InfinitePast();  // When, for the last time.
  double carried = 0;  // Bytes that it may have moved and not told yet.
  // To be evicted for jobs of other classes, and not told yet.
  Bytes ordered_by_others;
  MoveBurst restored, left_by_plan;            // For events...
  absl::Time reported = absl::InfinitePast();  // ...since the last report.
  BufferTable buffers;
  StepBook steps;
  StepPace pace;
  bool told_alone = false;  // Nobody else computed at its last report.
  PlanBook plan;
  bool told_tight = false;
  bool asked_for_life = false;  // It has not reported a buffer yet.
  // No Trim before: the last one brought less than was reported as cached.
  absl::Time trim_from = absl::InfinitePast();

  Bytes own() const { return chunk_bytes + orphan; }
  Bytes bytes() const { return own() + shared; }
  Bytes resident() const { return bytes() - cached; }
};

enum class Presence {
  kExpected,  // A record of an earlier daemon.
  kConnected,
  kLost,     // Its stream has ended, its process not.
  kRefused,  // It broke the rules; its process may still hold memory.
};

struct Job;

struct Session {
  SessionId id;
  DomainId domain;
  ProcessIdentity process;
  Job* job = nullptr;
  Presence presence = Presence::kConnected;
  // Nothing is granted to it until its Snapshot is complete.
  bool awaits_snapshot = false;
  // It comes from an earlier daemon: devices open once it is back.
  bool recovering = false;
  // It may come back to drained devices: an earlier daemon knew it.
  bool known_before = false;
  bool unresponsive = false;
  // It does not compute before (its gate is closed until then); nothing of it
  // is used before. State::RefreshVictims follows each change.
  absl::Time not_before = absl::InfinitePast();
  // That it waits for memory, for the last time.
  absl::Time told_waiting = absl::InfinitePast();
  std::vector<Holding> holdings;  // By device.
  std::vector<Snapshot> parts;    // Of the snapshot, so far.
  // Extents whose descriptors it has; false: sent, but perhaps lost.
  absl::btree_map<ExtentId, bool> extents;
  uint64_t extents_seen = 0;  // SwapBook::ready_count when it got all.
  KeptSession told;           // As the last change of it said.

  bool connected() const { return presence == Presence::kConnected; }
  // Can be granted memory and can follow orders.
  bool serves() const {
    return connected() && !awaits_snapshot && !unresponsive;
  }
};

// A job's part on one device.
struct JobOnDevice {
  Bytes pending;  // Reserved for its requests.
  Totals ended;   // Of sessions that have ended.
  absl::Time tight_until = absl::InfinitePast();
  int64_t waits = 0;         // That have begun...
  WaitHistogram wait_times;  // ...and that have ended.
  FailureCounts failures = {};
  int64_t turns = 0;
  absl::Duration gate_wait;
  // What of these is of earlier runs: processes of the name that have all
  // ended.
  struct Before {
    Bytes evicted, restored;
    int64_t waits = 0;
    absl::Duration memory_wait, gate_wait;
  } before;
};

// The sessions that share one quota. It outlives its last session for a while,
// for the sake of its totals.
struct Job {
  DomainId domain;
  std::string name;
  uint32_t uid = 0;
  Bytes limit;      // Zero: none.
  Bytes guarantee;  // Zero: none.
  int priority = 0;
  int weight = 1;
  // By the operator: no op of it starts; and what its limit is, whatever its
  // processes wish.
  bool paused = false;
  std::optional<Bytes> set_limit;
  std::set<SessionId> sessions;               // Expected ones included.
  absl::Time began = absl::InfiniteFuture();  // As far as this daemon knows.
  absl::Time last_active = absl::InfinitePast();
  absl::Time empty_since = absl::InfiniteFuture();
  std::vector<JobOnDevice> devices;
};

// Not thread-safe. Sessions and jobs stay at their address while they exist.
class SessionTable {
 public:
  explicit SessionTable(size_t devices) : devices_(devices) {}

  // REQUIRES: no session has the id. Sessions of one (domain, job name) form
  // one job.
  Session& Add(SessionId id, DomainId domain, const std::string& job);
  // The highest identifier that a session has had, or a predecessor's.
  SessionId last() const { return last_; }
  void Skip(SessionId last) { last_ = std::max(last_, last); }
  // The job stays, empty since `now` when this was its last session.
  void Remove(SessionId id, absl::Time now);
  // Null when there is none.
  Session* Find(SessionId id);
  Job* FindJob(DomainId domain, const std::string& name);
  std::map<SessionId, Session>& all() { return sessions_; }
  const std::map<SessionId, Session>& all() const { return sessions_; }
  std::map<std::pair<DomainId, std::string>, Job>& jobs() { return jobs_; }
  const std::map<std::pair<DomainId, std::string>, Job>& jobs() const {
    return jobs_;
  }

  // Bytes that the job's sessions have on a device, and those reserved for it.
  Bytes JobBytes(const Job& job, size_t device) const;
  bool Attached(const Job& job, size_t device) const;

  // Removes jobs that have been empty for `age`, and in each domain the longest
  // empty ones beyond `most`.
  void DropEmptyJobs(absl::Time now, absl::Duration age, size_t most);
  // When the next one will have been; InfiniteFuture without one.
  absl::Time NextDrop(absl::Duration age) const;

 private:
  const size_t devices_;
  SessionId last_;
  std::map<SessionId, Session> sessions_;
  absl::flat_hash_map<SessionId, Session*> by_id_;  // The same: found faster.
  std::map<std::pair<DomainId, std::string>, Job> jobs_;
  // Jobs without sessions: since when, and their names.
  std::map<DomainId, std::set<std::pair<absl::Time, std::string>>> empty_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_SESSIONS_SESSION_TABLE_H_
