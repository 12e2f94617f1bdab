#include "common/steps/step_program.h"

namespace mets::steps {

std::vector<bool> AllocatedWithin(const StepProgram& program) {
  std::vector<bool> allocated(program.buffers.size());
  std::vector<bool> freed(program.buffers.size());
  for (const StepOp& op : program.ops) {
    for (const Access& access : op.accesses) {
      if (access.kind == AccessKind::kNew) allocated[access.buffer] = true;
    }
    for (uint32_t b : op.frees) freed[b] = true;
  }
  for (size_t b = 0; b < allocated.size(); ++b) {
    allocated[b] = allocated[b] && freed[b];
  }
  return allocated;
}

}  // namespace mets::steps
