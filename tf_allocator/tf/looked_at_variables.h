// Variables that Python may look at.
#ifndef METS_TF_ALLOCATOR_TF_LOOKED_AT_VARIABLES_H_
#define METS_TF_ALLOCATOR_TF_LOOKED_AT_VARIABLES_H_

#include <deque>
#include <mutex>

#include "tensorflow/core/framework/resource_var.h"
#include "tf_allocator/core/device_memory.h"

namespace mets {

// A variable that Python reads hands it its own tensor, which is held from then
// on. Once nothing but the variable refers to the tensor Python cannot look at
// it any more, and it becomes movable. Without that a program that reads all
// its variables, one after the other, to save them, would hold all of them at
// once. Thread-safe. `memory` must outlive it.
class LookedAtVariables {
 public:
  explicit LookedAtVariables(DeviceMemory* memory) : memory_(memory) {}

  // `var` has been read. If METS has its tensor, settles some of the others.
  void Add(tensorflow::Var* var);

  // Looks at a few of those read, the longest unsettled first. Each read does,
  // and each graph that returns something, so that none stays whose tensor
  // nobody has.
  void SettleSome() { SettleSomeBut(nullptr); }

 private:
  using WeakVar = tensorflow::core::WeakPtr<tensorflow::Var>;

  // Forgets `var`.
  void SettleSomeBut(const tensorflow::Var* var);

  // Makes the variable's tensor movable; false when somebody has it.
  bool Settle(tensorflow::Var* var);

  DeviceMemory* const memory_;
  std::mutex mutex_;
  std::deque<WeakVar> variables_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_LOOKED_AT_VARIABLES_H_
