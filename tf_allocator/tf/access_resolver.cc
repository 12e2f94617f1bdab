#include "tf_allocator/tf/access_resolver.h"

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/type_index.h"
#include "tf_allocator/tf/list_elements.h"

namespace mets {
namespace {

using tensorflow::DMAHelper;
using tensorflow::OpKernelContext;
using tensorflow::ResourceHandle;
using tensorflow::Tensor;
using tensorflow::TensorBuffer;
using tensorflow::TensorValue;
using tensorflow::Var;

const uint64_t kVarType = tensorflow::TypeIndex::Make<Var>().hash_code();

// What the tensor is, or is a slice of.
TensorBuffer* RootOf(const TensorBuffer& buffer) {
  return const_cast<TensorBuffer&>(buffer).root_buffer();
}

// A tensor that an op names: nothing keeps it when nothing else refers to it,
// nor to what it is a slice of.
void SettleKept(DeviceMemory* memory, const TensorBuffer& buffer) {
  const TensorBuffer* root = RootOf(buffer);
  memory->NotKept(root->data(), root, [&buffer, root] {
    return buffer.RefCountIsOne() && root->RefCountIsOne();
  });
}

bool HoldWhileKept(DeviceMemory* memory, const Tensor& tensor,
                   const DeviceMemory::Reason& reason) {
  const TensorBuffer* root = RootOf(*DMAHelper::buffer(&tensor));
  return memory->HoldWhileKept(root->data(), root, reason);
}

// The op fails where something that is to be held could not be brought back:
// who looks at it would wait for ever.
void FailUnless(bool held, const DeviceMemory& memory,
                OpKernelContext* context) {
  if (!held) FailForMemory(context, memory.api().last_error());
}

// The tensor of a variable or reference; the caller holds its lock.
void AddLocked(DeviceMemory* memory, const Tensor& tensor,
               mets_access_kind kind, AccessList* accesses) {
  const TensorBuffer* buffer = DMAHelper::buffer(&tensor);
  if (buffer == nullptr || !memory->Owns(buffer->data())) return;
  SettleKept(memory, *buffer);
  accesses->Add(buffer->data(), kind);
}

// Calls `visit` with every variable whose handle the tensor has. False when one
// of its handles is another resource's.
template <typename Visit>
bool VisitVariables(OpKernelContext* context, const Tensor& tensor,
                    Visit visit) {
  const auto* handles =
      static_cast<const ResourceHandle*>(DMAHelper::base(&tensor));
  if (handles == nullptr) return true;
  bool all = true;
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const ResourceHandle& handle = handles[i];
    if (handle.hash_code() != kVarType) {
      all = false;
    } else if (handle.IsRefCounting()) {
      visit(static_cast<Var*>(handle.resource().get()));
    } else {
      tensorflow::core::RefCountPtr<Var> var;
      if (LookupResource(context, handle, &var).ok()) visit(var.get());
    }
  }
  return all;
}

void AddResources(DeviceMemory* memory, const KernelState& state,
                  OpKernelContext* context, const Tensor& tensor,
                  Inputs* inputs) {
  const mets_access_kind kind =
      state.variables == VariableUse::kRead ? METS_READ : METS_WRITE;
  const bool all = VisitVariables(context, tensor, [&](Var* var) {
    if (state.variables == VariableUse::kReplace) return;
    tensorflow::tf_shared_lock lock(*var->mu());
    AddLocked(memory, *var->tensor(), kind, &inputs->accesses);
  });
  if (!all) inputs->keeps = true;
}

// What is in lists is only read: where a kernel changes a list it takes out
// what was there.
void AddElements(DeviceMemory* memory, const KernelState& state,
                 const Tensor& variants, Inputs* inputs) {
  const bool reads = state.kind == OpKind::kReadElements;
  const bool all = VisitElements(variants, [&](const Tensor& element) {
    const void* data = DMAHelper::base(&element);
    if (reads && memory->Owns(data)) inputs->accesses.Add(data, METS_READ);
  });
  if (!all) inputs->keeps = true;
}

// An input that nothing else refers to may be reused for an output.
mets_access_kind KindOfInput(const TensorBuffer& buffer) {
  return buffer.RefCountIsOne() ? METS_WRITE : METS_READ;
}

bool Announced(const AccessList& accesses, const void* address,
               mets_access_kind kind) {
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].address == address && accesses[i].kind == kind) return true;
  }
  return false;
}

bool IsVariants(const TensorValue& value) {
  return value.tensor != nullptr && !value.is_ref() &&
         value.tensor->dtype() == tensorflow::DT_VARIANT;
}

const char* TypeOf(OpKernelContext* context) {
  return context->op_kernel().type_string().c_str();
}

template <typename Visit>
void VisitOutputs(OpKernelContext* context, Visit visit) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (tensorflow::IsRefType(context->op_kernel().output_type(i))) continue;
    const Tensor* tensor = context->mutable_output(i);
    if (tensor != nullptr && tensor->IsInitialized()) visit(*tensor);
  }
}

}  // namespace

void ResolveInputs(DeviceMemory* memory, const KernelState& state,
                   OpKernelContext* context, Inputs* inputs) {
  for (const TensorValue& value : context->params()->inputs) {
    if (value.tensor == nullptr) continue;
    if (value.is_ref()) {
      tensorflow::tf_shared_lock lock(*value.mutex_if_ref);
      AddLocked(memory, *value.tensor, METS_WRITE, &inputs->accesses);
      continue;
    }
    const TensorBuffer* buffer = DMAHelper::buffer(value.tensor);
    if (buffer == nullptr) continue;
    if (value.tensor->dtype() == tensorflow::DT_RESOURCE) {
      AddResources(memory, state, context, *value.tensor, inputs);
    } else if (value.tensor->dtype() == tensorflow::DT_VARIANT) {
      AddElements(memory, state, *value.tensor, inputs);
    } else if (memory->Owns(buffer->data())) {
      SettleKept(memory, *buffer);
      inputs->accesses.Add(buffer->data(), KindOfInput(*buffer));
    }
  }
}

bool ReadingCopies(OpKernelContext* context) {
  bool copies = true;
  VisitVariables(context, context->input(0), [&](Var* var) {
    copies = var->copy_on_read_mode.load();
  });
  return copies;
}

void FailForMemory(OpKernelContext* context, const std::string& error) {
  context->SetStatus(absl::ResourceExhaustedError(
      "METS has no memory for the op " + context->op_kernel().name() + ": " +
      error));
}

void NoteLookedAt(OpKernelContext* context, LookedAtVariables* variables) {
  VisitVariables(context, context->input(0),
                 [&](Var* var) { variables->Add(var); });
}

uint64_t InputSignature(const KernelState& state, OpKernelContext* context) {
  uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&hash](uint64_t bytes) {
    hash = (hash ^ bytes) * 0x100000001B3u;
  };
  for (const TensorValue& value : context->params()->inputs) {
    uint64_t bytes = 1;
    if (value.tensor != nullptr && !value.is_ref() &&
        value.tensor->IsInitialized()) {
      bytes = value.tensor->TotalBytes();
    }
    add(bytes);
    if (state.kind == OpKind::kReadElements && IsVariants(value)) {
      VisitElements(*value.tensor, [&add](const Tensor& element) {
        add(element.TotalBytes());
      });
    }
  }
  return hash;
}

void* BufferOf(const DeviceMemory& memory, const Tensor& tensor) {
  const TensorBuffer* buffer = DMAHelper::buffer(&tensor);
  if (buffer == nullptr || !memory.Owns(buffer->data())) return nullptr;
  return RootOf(*buffer)->data();
}

bool MayMove(const Tensor& tensor) {
  return tensorflow::DataTypeCanUseMemcpy(tensor.dtype()) &&
         RootOf(*DMAHelper::buffer(&tensor))->OwnsMemory();
}

void SettleVariables(DeviceMemory* memory, const AccessList& accesses,
                     int64_t step) {
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (accesses[i].kind == METS_NEW) continue;
    memory->MakeMovable(const_cast<void*>(accesses[i].address), step);
  }
}

void SettleInputs(DeviceMemory* memory, OpKind kind, OpKernelContext* context) {
  if (kind == OpKind::kPassElements) return;
  const auto settle = [&](const Tensor& tensor) {
    void* buffer = BufferOf(*memory, tensor);
    if (buffer == nullptr) return;
    if (!MayMove(tensor)) {
      FailUnless(memory->HoldForGood(
                     buffer, {TypeOf(context), "input that must not move"}),
                 *memory, context);
    } else if (kind == OpKind::kKeep) {
      FailUnless(HoldWhileKept(memory, tensor,
                               {TypeOf(context), "may keep its input"}),
                 *memory, context);
    } else {
      memory->MakeMovable(buffer, context->step_id());
    }
  };
  for (const TensorValue& value : context->params()->inputs) {
    if (value.tensor == nullptr || value.is_ref()) continue;
    settle(*value.tensor);
    if (IsVariants(value) && kind != OpKind::kMakeElements) {
      VisitElements(*value.tensor, settle);
    }
  }
}

void SettleOutputs(DeviceMemory* memory, OpScope* scope,
                   const AccessList& accesses, OpKernelContext* context) {
  VisitOutputs(context, [&](const Tensor& tensor) {
    if (tensor.dtype() == tensorflow::DT_VARIANT) {
      VisitElements(tensor, [&](const Tensor& element) {
        void* buffer = BufferOf(*memory, element);
        if (buffer == nullptr || MayMove(element)) return;
        memory->HoldForGood(buffer, {TypeOf(context), "output with objects"});
      });
    }
    void* buffer = BufferOf(*memory, tensor);
    if (buffer == nullptr) return;
    const bool own = scope->NoteOutput(buffer);
    if (!MayMove(tensor)) {
      memory->HoldForGood(buffer, {TypeOf(context), "output with objects"});
      return;
    }
    if (own) return;
    memory->MakeMovable(buffer, context->step_id());
    // At most this output and the input refer to it: it may have been written.
    const void* data = DMAHelper::base(&tensor);
    if (DMAHelper::buffer(&tensor)->RefCount() <= 2 &&
        Announced(accesses, data, METS_READ)) {
      scope->Upgrade(buffer);
    }
  });
}

void SettleNewVariables(DeviceMemory* memory, OpScope* scope,
                        OpKernelContext* context) {
  for (const TensorValue& value : context->params()->inputs) {
    if (value.tensor == nullptr || value.is_ref() ||
        value.tensor->dtype() != tensorflow::DT_RESOURCE) {
      continue;
    }
    VisitVariables(context, *value.tensor, [&](Var* var) {
      tensorflow::tf_shared_lock lock(*var->mu());
      void* buffer = BufferOf(*memory, *var->tensor());
      if (buffer != nullptr && !scope->NoteOutput(buffer)) {
        memory->MakeMovable(buffer, context->step_id());
      }
    });
  }
}

void HoldReturned(DeviceMemory* memory, OpKernelContext* context) {
  for (const TensorValue& value : context->params()->inputs) {
    if (value.tensor == nullptr || value.is_ref()) continue;
    void* buffer = BufferOf(*memory, *value.tensor);
    if (buffer == nullptr || !MayMove(*value.tensor)) continue;
    FailUnless(memory->HoldUntilNamed(buffer, {TypeOf(context), "is returned"},
                                      context->step_id()),
               *memory, context);
  }
}

void HoldOutputs(DeviceMemory* memory, OpKernelContext* context) {
  VisitOutputs(context, [&](const Tensor& tensor) {
    void* buffer = BufferOf(*memory, tensor);
    if (buffer == nullptr || !MayMove(tensor)) return;
    FailUnless(
        memory->HoldUntilNamed(buffer, {TypeOf(context), "outside of graphs"}),
        *memory, context);
  });
}

void SettleKeptOutputs(DeviceMemory* memory, OpKernelContext* context) {
  const DeviceMemory::Reason reason = {TypeOf(context), "may keep its output"};
  const auto settle = [&](const Tensor& tensor, bool in_list) {
    void* buffer = BufferOf(*memory, tensor);
    if (buffer == nullptr) return;
    const TensorBuffer* own = DMAHelper::buffer(&tensor);
    if (!MayMove(tensor)) {
      FailUnless(memory->HoldForGood(buffer, reason), *memory, context);
    } else if (!in_list && own->data() == buffer && own->RefCountIsOne()) {
      FailUnless(memory->HoldUntilNamed(buffer, reason), *memory, context);
    } else {
      FailUnless(HoldWhileKept(memory, tensor, reason), *memory, context);
    }
  };
  VisitOutputs(context, [&](const Tensor& tensor) {
    settle(tensor, /*in_list=*/false);
    if (tensor.dtype() != tensorflow::DT_VARIANT) return;
    VisitElements(tensor, [&settle](const Tensor& element) {
      settle(element, /*in_list=*/true);
    });
  });
}

}  // namespace mets
