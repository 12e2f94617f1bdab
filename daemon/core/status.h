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
#include "daemon/core/values.h"

namespace mets::core {

enum class SharingMode {
  kFree,    // Everybody computes at once.
  kTurns,   // Step by step, one after the other; nothing moves.
  kQuanta,  // One after the other; bytes move between.
};

struct DeviceStatus {
  std::string id;
  std::string kind;
  Bytes pool, free, cached, resident, moving, draining, orphan;
  Bytes swap_used, swap_clean, swap_limit;
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
  int64_t steps = 0;             // Repetitions that its processes have found.
  absl::Duration step_duration;  // Of the last one; the longest of them.
};

// What one session holds; the state file records it.
struct SessionHolding {
  SessionId session;
  DomainId domain;
  std::string job;
  std::vector<std::pair<std::string, Bytes>> held;  // Device name, bytes.
};

struct Status {
  std::string policy;
  std::vector<DeviceStatus> devices;
  std::vector<JobStatus> jobs;
  std::vector<SessionHolding> sessions;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_STATUS_H_
