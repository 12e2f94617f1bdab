#include "daemon/sim/least_restored.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace mets::sim {
namespace {

constexpr size_t kNever = SIZE_MAX;

// For each access of each op, the op that uses the buffer next.
std::vector<std::vector<size_t>> NextUses(const JobProgram& program) {
  std::vector<size_t> next(program.buffers.size(), kNever);
  std::vector<std::vector<size_t>> result(program.ops.size());
  for (size_t op = program.ops.size(); op-- > 0;) {
    for (const steps::Access& access : program.ops[op].accesses) {
      result[op].push_back(std::exchange(next[access.buffer], op));
    }
  }
  return result;
}

class Sweep {
 public:
  Sweep(const JobProgram& program, Bytes memory)
      : program_(program), memory_(memory), kept_(program.buffers.size()) {}

  Bytes Run() {
    const std::vector<std::vector<size_t>> next = NextUses(program_);
    for (size_t op = 0; op < program_.ops.size(); ++op) {
      const std::vector<steps::Access>& accesses = program_.ops[op].accesses;
      Bytes touched = program_.small_peak;
      for (const steps::Access& access : accesses) {
        touched += program_.buffers[access.buffer];
        Use(access, op);
      }
      MakeRoom(memory_ - touched);
      for (size_t i = 0; i < accesses.size(); ++i) {
        if (next[op][i] != kNever) Keep(accesses[i].buffer, next[op][i]);
      }
    }
    return restored_;
  }

 private:
  void Use(const steps::Access& access, size_t op) {
    Bytes& kept = kept_[access.buffer];
    if (access.kind != steps::AccessKind::kNew) {
      restored_ += program_.buffers[access.buffer] - kept;
    }
    by_next_use_.erase({op, access.buffer});
    kept_bytes_ -= std::exchange(kept, Bytes());
  }

  void MakeRoom(Bytes room) {
    while (kept_bytes_ > room && !by_next_use_.empty()) {
      const auto farthest = std::prev(by_next_use_.end());
      Bytes& kept = kept_[farthest->second];
      const Bytes gone = std::min(kept, kept_bytes_ - room);
      kept -= gone;
      kept_bytes_ -= gone;
      if (kept.is_zero()) by_next_use_.erase(farthest);
    }
  }

  void Keep(uint32_t buffer, size_t next_use) {
    kept_[buffer] = program_.buffers[buffer];
    kept_bytes_ += kept_[buffer];
    by_next_use_.insert({next_use, buffer});
  }

  const JobProgram& program_;
  const Bytes memory_;
  std::vector<Bytes> kept_;  // Of each buffer that no op uses right now.
  Bytes kept_bytes_;
  std::set<std::pair<size_t, uint32_t>> by_next_use_;
  Bytes restored_;
};

}  // namespace

Bytes LeastRestored(const JobProgram& program, Bytes memory) {
  return Sweep(program, memory).Run();
}

}  // namespace mets::sim
