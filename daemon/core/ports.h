// Ports: how the parts of the daemon reach each other without knowing each
// other. daemon/app connects them.
#ifndef METS_DAEMON_CORE_PORTS_H_
#define METS_DAEMON_CORE_PORTS_H_

#include "absl/status/statusor.h"
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

// Gives a consistent copy of the core's state. Thread-safe.
class StatusSource {
 public:
  virtual ~StatusSource() = default;
  virtual Status GetStatus() const = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_PORTS_H_
