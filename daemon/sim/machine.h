// Machine: what simulated jobs share: a device's bus and its processor.
#ifndef METS_DAEMON_SIM_MACHINE_H_
#define METS_DAEMON_SIM_MACHINE_H_

#include <functional>
#include <map>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/sim/world.h"

namespace mets::sim {

struct MachineCosts {
  double bus_bytes_per_second = 12e9;  // Each way.
  double message = 30e-6;              // From client to daemon, or back.
  double map = 60e-6;                  // To map or unmap one buffer.
  // That a client makes for its plan at once, each way (MapDriverInfo::moves).
  int moves = 2;
};

// How much slower a device's ops run per byte a second that other processes
// copy to or from it meanwhile: as a ResNet-50 training on an H100, which lost
// 6 % to copies of 90 GB/s.
inline constexpr double kSlowdownPerCopyRate = 0.06 / 90e9;

// Runs ops; those that run at the same time share it evenly, and each is slowed
// down by what the other jobs copy at that moment.
class Processor {
 public:
  explicit Processor(World* world) : world_(*world) {}

  // Runs an op of `job` that takes `seconds` alone, then `done`.
  void Run(SessionId job, double seconds, std::function<void()> done);
  // From now on `job` copies so many bytes a second more, or less.
  void ChangeCopying(SessionId job, double bytes_per_second);

  // Seconds that the job's ops have lost to other jobs' copies, and to their
  // ops.
  double slowed(SessionId job) const { return Of(slowed_, job); }
  double shared(SessionId job) const { return Of(shared_, job); }

 private:
  struct Running {
    SessionId job;
    double left;
    std::function<void()> done;
  };
  static double Of(const std::map<SessionId, double>& seconds, SessionId job);
  // The part of its speed that an op of `job` loses now.
  double Slowdown(SessionId job) const;
  void Advance();
  void Schedule();

  World& world_;
  std::map<uint64_t, Running> running_;
  std::map<SessionId, double> copying_;  // Bytes a second.
  std::map<SessionId, double> slowed_, shared_;
  uint64_t last_ = 0;
  uint64_t version_ = 0;  // Of the schedule: old events do nothing.
  double advanced_ = 0;
};

// One direction of the bus: copies run one after the other.
class BusDirection {
 public:
  BusDirection(World* world, double bytes_per_second, Processor* processor)
      : world_(*world), speed_(bytes_per_second), processor_(*processor) {}

  // Copies for `job` when it is this copy's turn, then runs `done`.
  void Copy(SessionId job, Bytes bytes, std::function<void()> done);

  bool busy() const { return free_at_ > world_.now(); }

 private:
  World& world_;
  const double speed_;
  Processor& processor_;
  double free_at_ = 0;
};

struct Machine {
  Machine(World* world, const MachineCosts& machine_costs)
      : costs(machine_costs),
        processor(world),
        out(world, machine_costs.bus_bytes_per_second, &processor),
        in(world, machine_costs.bus_bytes_per_second, &processor) {}

  const MachineCosts costs;
  Processor processor;
  BusDirection out, in;
};

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_MACHINE_H_
