// Failures: what jobs asked for and did not get, by reason.
#ifndef METS_DAEMON_CORE_COSTS_FAILURE_H_
#define METS_DAEMON_CORE_COSTS_FAILURE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace mets::core {

// Why. Requests that ask only for what is free are no failures.
enum class Failure {
  kPool,          // It asked for more than the pool.
  kLimit,         // It asked for more than its limit lets it have.
  kSwapFull,      // Others could not leave: no swap space.
  kPinned,        // What was left was pinned, held or fixed.
  kGuarantee,     // What was left, or all that it wished for, was guaranteed.
  kDrained,       // The device takes no new jobs.
  kUnresponsive,  // What was left belonged to processes that do not answer.
  kDevice,        // The device could not create memory.
  kTimeout,       // Others had the memory for too long.
  kCopy,          // A buffer could not be copied or mapped.
  kProtocol,      // The process broke the rules and was refused.
};
inline constexpr size_t kFailures = 11;

using FailureCounts = std::array<int64_t, kFailures>;

// As labels of metrics and in JSON: "swap_full".
constexpr const char* NameOf(Failure failure) {
  constexpr const char* kNames[kFailures] = {
      "pool",    "limit",        "swap_full", "pinned",  "guarantee",
      "drained", "unresponsive", "device",    "timeout", "copy",
      "protocol"};
  return kNames[static_cast<size_t>(failure)];
}

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_COSTS_FAILURE_H_
