#include "daemon/sim/least_seconds.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mets::sim {
namespace {

class Stretches {
 public:
  Stretches(const JobProgram& program, Bytes memory, double speed)
      : program_(program),
        memory_(memory - program.small_peak),
        speed_(speed),
        allocated_(program.buffers.size()),
        seen_(program.buffers.size(), SIZE_MAX) {
    double clock = 0;
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const JobOp& op = program.ops[i];
      begins_.push_back(clock += op.gap);
      clock += op.busy;
      for (const steps::Access& access : op.accesses) {
        if (access.kind == steps::AccessKind::kNew) {
          allocated_[access.buffer] = i;
        }
      }
    }
    end_ = clock;
    lost_.assign(program.ops.size() + 1, 0);
  }

  double Run() {
    Bytes live;
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      for (const steps::Access& access : program_.ops[i].accesses) {
        if (access.kind == steps::AccessKind::kNew) {
          live += program_.buffers[access.buffer];
        }
      }
      if (live > memory_) From(i, Seconds(live - memory_));
      lost_[i + 1] = std::max(lost_[i + 1], lost_[i]);
      for (uint32_t b : program_.ops[i].frees) live -= program_.buffers[b];
    }
    return end_ + lost_.back();
  }

 private:
  double Seconds(Bytes bytes) const {
    return static_cast<double>(bytes.count()) / speed_;
  }

  // All stretches that begin with op `i`; the bus needs `most` at most.
  void From(size_t i, double most) {
    Bytes used;
    for (size_t j = i; j < program_.ops.size(); ++j) {
      const double passed = begins_[j] - begins_[i];
      if (passed >= most) break;
      for (const steps::Access& access : program_.ops[j].accesses) {
        if (allocated_[access.buffer] > i || seen_[access.buffer] == i)
          continue;
        seen_[access.buffer] = i;
        used += program_.buffers[access.buffer];
      }
      if (used <= memory_) continue;
      const double late = Seconds(used - memory_) - passed;
      if (late > 0) lost_[j] = std::max(lost_[j], lost_[i] + late);
    }
  }

  const JobProgram& program_;
  const Bytes memory_;
  const double speed_;
  std::vector<double> begins_;     // Of each op, when nothing is waited for.
  std::vector<double> lost_;       // Until each op begins, at least.
  std::vector<size_t> allocated_;  // The op that allocates each buffer.
  std::vector<size_t> seen_;       // The last stretch that used it.
  double end_ = 0;
};

}  // namespace

double LeastSeconds(const JobProgram& program, Bytes memory,
                    double bus_bytes_per_second) {
  return Stretches(program, memory, bus_bytes_per_second).Run();
}

}  // namespace mets::sim
