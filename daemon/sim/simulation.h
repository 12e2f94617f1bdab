// Simulation: several recorded jobs on one device, in virtual time.
#ifndef METS_DAEMON_SIM_SIMULATION_H_
#define METS_DAEMON_SIM_SIMULATION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/core.h"
#include "daemon/sim/job_program.h"
#include "daemon/sim/machine.h"
#include "daemon/sim/sim_client.h"

namespace mets::sim {

struct SimJob {
  const JobProgram* program = nullptr;  // Borrowed.
  double start = 0;                     // Virtual seconds.
  int priority = 0;
  int weight = 1;
  Bytes limit = Bytes(), guarantee = Bytes();  // Zero: none.
};

struct SimOptions {
  Bytes device_memory;
  MachineCosts costs;
  std::function<std::unique_ptr<core::VictimPolicy>()> policy;
  bool plans = true;                 // See CoreConfig::plans.
  double interference_bound = 0.02;  // See CoreConfig::interference_bound.
  // Seconds; zero: as METS decides. See CoreConfig::fixed_quantum.
  double fixed_quantum = 0;
  // Called now and then with the share that has been simulated, 0 to 1.
  std::function<void(double)> progress;
  // How often residency is sampled for the plot; zero: never.
  double sample_every = 0;
};

// Resident bytes of each job at a moment.
struct Sample {
  double time = 0;
  std::vector<Bytes> resident;
};

struct SimResult {
  double seconds = 0;  // From the first start to the last end.
  std::vector<JobResult> jobs;
  std::vector<Sample> samples;
};

// Runs the jobs to their ends through a core::Core, the object that decides in
// metsd. Chunks and extents are created at once; copies, ops and messages take
// the time that the costs say. Small allocations are taken off the device's
// memory. The same options give the same result.
//
// RESOURCE_EXHAUSTED when a job is denied memory; the message is the core's.
absl::StatusOr<SimResult> Simulate(const std::vector<SimJob>& jobs,
                                   const SimOptions& options);

}  // namespace mets::sim

#endif  // METS_DAEMON_SIM_SIMULATION_H_
