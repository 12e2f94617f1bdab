// Ports: how the parts of the daemon reach each other without knowing each
// other. daemon/app connects them.
#ifndef METS_DAEMON_CORE_PORTS_H_
#define METS_DAEMON_CORE_PORTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/events/event.h"
#include "daemon/core/types.h"

namespace mets::core {

// Takes inputs for the core. Thread-safe; does not block.
class InputSink {
 public:
  virtual ~InputSink() = default;
  virtual void Post(Input input) = 0;
};

// Carries out actions that concern sessions. Called by the engine's thread, in
// order; does not block.
class SessionPort {
 public:
  virtual ~SessionPort() = default;
  virtual void Perform(SessionAction action) = 0;
};

// Carries out actions that concern memory. Called by the engine's thread, in
// order; does not block: results come back as inputs.
class MemoryPort {
 public:
  virtual ~MemoryPort() = default;
  virtual void Perform(MemoryAction action) = 0;
};

// Carries out what operators are owed. Called by the engine's thread, in order;
// does not block.
class OperatorPort {
 public:
  virtual ~OperatorPort() = default;
  virtual void Perform(OperatorAction action) = 0;
};

// Makes plans. Called by the engine's thread; does not block: plans come back
// as inputs.
class PlannerPort {
 public:
  virtual ~PlannerPort() = default;
  virtual void Perform(PlanTask task) = 0;
};

// Gives descriptors of chunks and extents that exist. The descriptor stays
// owned by the source, and open until the core orders its destruction (which
// it does only after every session has forgotten it). Thread-safe.
class DescriptorSource {
 public:
  virtual ~DescriptorSource() = default;
  virtual absl::StatusOr<int> ChunkDescriptor(ChunkId chunk) const = 0;
  virtual absl::StatusOr<int> ExtentDescriptor(ExtentId extent) const = 0;
};

// Keeps what was decided (Core::TakeEvents), and passes it on. Thread-safe.
class EventLog {
 public:
  // Numbers ascend from 1; some may be missing.
  struct Entry {
    uint64_t number = 0;
    Event event;
  };
  virtual ~EventLog() = default;
  // Entries behind `after`, of (or for) one job and of whole devices unless
  // `job` is empty, oldest first and
  // at most `most` of the newest.
  virtual std::vector<Entry> Recent(uint64_t after, const std::string& job,
                                    size_t most) const = 0;
  // Calls `wake` after every addition, from any thread, until Unwatch, which
  // waits for a call that runs. `wake` must not block, nor call the log.
  virtual uint64_t Watch(std::function<void()> wake) = 0;
  virtual void Unwatch(uint64_t watch) = 0;
};

// Gives a consistent copy of the core's state. Thread-safe.
class StatusSource {
 public:
  virtual ~StatusSource() = default;
  virtual Status GetStatus() const = 0;
  // As Core::Why.
  virtual std::vector<WhyAnswer> Why(const std::string& job) const = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PORTS_H_
