#include "tf_allocator/tf/looked_at_variables.h"

#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tf_allocator/tf/access_resolver.h"

namespace mets {

void LookedAtVariables::Add(tensorflow::Var* var) {
  {
    tensorflow::tf_shared_lock lock(*var->mu());
    if (BufferOf(*memory_, *var->tensor()) == nullptr) return;
  }
  SettleSomeBut(var);
  std::lock_guard<std::mutex> lock(mutex_);
  variables_.push_back(WeakVar(var));
}

void LookedAtVariables::SettleSomeBut(const tensorflow::Var* var) {
  constexpr int kLooks = 4;
  for (int i = 0; i < kLooks; ++i) {
    WeakVar oldest;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (variables_.empty()) return;
      oldest = std::move(variables_.front());
      variables_.pop_front();
    }
    // Releasing it may destroy the variable, so no lock is held.
    const auto found = oldest.GetNewRef();
    if (found == nullptr || found.get() == var || Settle(found.get())) continue;
    std::lock_guard<std::mutex> lock(mutex_);
    variables_.push_back(std::move(oldest));
  }
}

bool LookedAtVariables::Settle(tensorflow::Var* var) {
  // Whoever reads it has the lock while the tensor gets its new reference. An
  // op that has the lock may be waiting for memory that this op uses.
  tensorflow::mutex_lock lock(*var->mu(), std::try_to_lock);
  if (!lock) return false;
  const auto* buffer = tensorflow::DMAHelper::buffer(var->tensor());
  if (buffer == nullptr) return true;
  if (!buffer->RefCountIsOne()) return false;
  void* address = BufferOf(*memory_, *var->tensor());
  if (address != nullptr) memory_->MakeMovable(address, HeldBuffers::kNoStep);
  return true;
}

}  // namespace mets
