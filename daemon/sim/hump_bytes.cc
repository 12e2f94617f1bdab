#include "daemon/sim/hump_bytes.h"

#include <algorithm>

namespace mets::sim {

Bytes HumpBytes(const JobProgram& program, Bytes memory) {
  Bytes live = program.small_peak, moved, height;
  for (const JobOp& op : program.ops) {
    for (const steps::Access& access : op.accesses) {
      if (access.kind == steps::AccessKind::kNew) {
        live += program.buffers[access.buffer];
      }
    }
    const Bytes over = live - memory;
    if (over > Bytes()) {
      height = std::max(height, over);
    } else {
      moved += height;
      height = Bytes();
    }
    for (uint32_t b : op.frees) live -= program.buffers[b];
  }
  // What is still away at the end does not come back.
  return moved * 2 + height;
}

}  // namespace mets::sim
