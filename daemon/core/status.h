// The core's state, for status, metrics and the state file.
#ifndef METS_DAEMON_CORE_STATUS_H_
#define METS_DAEMON_CORE_STATUS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/costs/duration_histogram.h"
#include "daemon/core/costs/failure.h"
#include "daemon/core/values.h"

namespace mets::core {

enum class SharingMode {
  kFree,    // Everybody computes at once.
  kTurns,   // Step by step, one after the other; nothing moves.
  kQuanta,  // One after the other; bytes move between.
};

// What a job does on a device.
enum class JobPhase {
  kComputes,
  kWaitsForTurn,    // An op waits at its closed gate.
  kWaitsForMemory,  // A request of it waits.
  kIdle,            // It uses no memory and waits for none.
  kSilent,          // A process of it does not answer.
  kAway,            // None of its processes is connected.
  kPaused,          // By an operator.
};

// "waits_for_memory", as programs know it.
const char* PhaseName(JobPhase phase);

struct DeviceStatus {
  std::string id;
  std::string kind;
  Bytes pool, free, cached, resident, moving, draining, orphan;
  Bytes swap_used, swap_clean, swap_limit;
  Bytes pinned;  // Part of resident.
  Bytes shared;  // Part of resident: of shares, each counted once.
  // Copied to and from swap space since metsd started, and how fast that can
  // go, one way.
  double copied_out_bytes = 0, copied_in_bytes = 0;
  double bus_bytes_per_second = 0;
  // Passed on by evictions, and the time in which some were under way.
  Bytes handover;
  absl::Duration handover_time;
  SharingMode mode = SharingMode::kFree;
  int64_t turns_total = 0;
  int64_t quanta_total = 0;
  bool drained = false;  // It takes no new jobs.
};

struct JobStatus {
  std::string name;
  std::string device;
  DomainId domain;
  uint32_t uid = 0;
  int sessions = 0;
  Bytes resident, swapped, pinned, held, cached, limit, guarantee;
  int priority = 0;
  Totals totals;
  int waiting = 0;
  int64_t waits_total = 0;
  absl::Duration wait_total;
  int unresponsive_sessions = 0;
  int weight = 1;
  bool gate_open = true;
  bool paused = false;
  int64_t turns_total = 0;  // Quanta included.
  absl::Duration gate_wait_total;
  absl::Duration step_duration;  // Of the last one; the longest of them.
  // Its mean step of late with all waits, and the same when nobody else
  // computes; of the process that is slowed down most. Zero: not known.
  absl::Duration recent_step, uncontended_step;
  double slowdown = 0;       // The one ÷ the other; 0: not known.
  WaitHistogram wait_times;  // Of requests for memory.
  // How long the oldest request that waits has waited, or the job for its turn.
  absl::Duration waiting_for;
  FailureCounts failures = {};
  JobPhase phase = JobPhase::kIdle;
};

// Memory that processes of one domain have mapped read-only.
struct ShareStatus {
  std::string name;  // Empty: of an earlier daemon; nobody can attach it.
  std::string device;
  std::string checksum;
  Bytes bytes;
  std::vector<std::string> jobs;  // Whose processes have it, once each.
  int sessions = 0;               // Those processes.
  std::string payer;              // The job whose limit it counts against.
};

// Processes that have a session, by state.
struct SessionCounts {
  int connected = 0;
  int unresponsive = 0;  // Connected, but an order has not been answered.
  int returning = 0;     // Without a stream, or on its way back with one.
  int refused = 0;       // It broke the rules and may still hold memory.
};

// What one session holds; the state file records it.
struct SessionHolding {
  SessionId session;
  DomainId domain;
  std::string job;
  std::vector<std::pair<std::string, Bytes>> held;  // Device name, bytes.
};

// Why a job does not compute, or that it does.
struct WhyAnswer {
  std::string job;
  std::string device;
  JobPhase phase = JobPhase::kIdle;
  std::string summary;               // After the job's name.
  std::vector<std::string> reasons;  // One line each.
  std::vector<std::string> advice;   // Likewise: what would help.
  // Of a request that waits: what its denial would say now.
  std::string report;
};

struct Status {
  std::string policy;
  std::vector<DeviceStatus> devices;
  std::vector<JobStatus> jobs;
  std::vector<ShareStatus> shares;
  std::vector<SessionHolding> sessions;
  SessionCounts session_counts;
  OperatorSettings settings;
  // Filled in by who drives the core and reads the clock.
  DecisionHistogram decisions;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STATUS_H_
