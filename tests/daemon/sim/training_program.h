// TrainingProgram: a small training for the simulator's tests.
#ifndef METS_TESTS_DAEMON_SIM_TRAINING_PROGRAM_H_
#define METS_TESTS_DAEMON_SIM_TRAINING_PROGRAM_H_

#include <vector>

#include "daemon/sim/job_program.h"

namespace mets::sim {

inline constexpr uint32_t kLayers = 8;
inline constexpr Bytes kWeights = MiB(4);       // Of one layer.
inline constexpr Bytes kActivations = MiB(16);  // Of one layer.
inline constexpr Bytes kTrainingPeak =
    (kWeights + kActivations) * int64_t{kLayers};

// `steps` steps: each layer makes its activations, then, last layer first, they
// are read and freed, and the layer's weights are written. An op takes
// `seconds`; a step has 2 * kLayers ops.
inline JobProgram TrainingProgram(int steps, double seconds) {
  using steps::AccessKind;
  JobProgram program;
  program.name = "training";
  program.peak = kTrainingPeak;
  program.buffers.assign(kLayers, kWeights);
  for (int step = 0; step < steps; ++step) {
    const auto first = static_cast<uint32_t>(program.buffers.size());
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      program.buffers.push_back(kActivations);
      JobOp op;
      op.busy = seconds;
      op.accesses = {{layer, step == 0 ? AccessKind::kNew : AccessKind::kRead},
                     {first + layer, AccessKind::kNew}};
      if (layer > 0)
        op.accesses.push_back({first + layer - 1, AccessKind::kRead});
      program.ops.push_back(op);
    }
    for (uint32_t layer = kLayers; layer-- > 0;) {
      JobOp op;
      op.busy = seconds;
      op.accesses = {{layer, AccessKind::kWrite},
                     {first + layer, AccessKind::kRead}};
      op.frees = {first + layer};
      program.ops.push_back(op);
    }
  }
  program.seconds = seconds * static_cast<double>(program.ops.size());
  return program;
}

}  // namespace mets::sim

#endif  // METS_TESTS_DAEMON_SIM_TRAINING_PROGRAM_H_
