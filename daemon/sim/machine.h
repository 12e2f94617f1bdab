// Machine: what simulated jobs share: a device's bus and its processor.
#ifndef METS_DAEMON_SIM_MACHINE_H_
#define METS_DAEMON_SIM_MACHINE_H_

#include <functional>
#include <map>

#include "common/base/bytes.h"
#include "daemon/sim/world.h"

namespace mets::sim {

struct MachineCosts {
  double bus_bytes_per_second = 12e9;  // Each way.
  double message = 30e-6;              // From client to daemon, or back.
  double map = 60e-6;                  // To map or unmap one buffer.
};

// One direction of the bus: copies run one after the other.
class BusDirection {
 public:
  BusDirection(World* world, double bytes_per_second)
      : world_(*world), speed_(bytes_per_second) {}

  // Copies when it is this copy's turn, then runs `done`.
  void Copy(Bytes bytes, std::function<void()> done);

 private:
  World& world_;
  const double speed_;
  double free_at_ = 0;
};

// Runs ops; those that run at the same time share it evenly.
class Processor {
 public:
  explicit Processor(World* world) : world_(*world) {}

  // Runs an op that takes `seconds` alone, then `done`.
  void Run(double seconds, std::function<void()> done);

 private:
  struct Running {
    double left;
    std::function<void()> done;
  };
  void Advance();
  void Schedule();

  World& world_;
  std::map<uint64_t, Running> running_;
  uint64_t last_ = 0;
  uint64_t version_ = 0;  // Of the schedule: old events do nothing.
  double advanced_ = 0;
};

struct Machine {
  Machine(World* world, const MachineCosts& machine_costs)
      : costs(machine_costs),
        out(world, machine_costs.bus_bytes_per_second),
        in(world, machine_costs.bus_bytes_per_second),
        processor(world) {}

  const MachineCosts costs;
  BusDirection out, in;
  Processor processor;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_MACHINE_H_
