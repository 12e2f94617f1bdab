// Which buffers of METS a kernel is going to touch.
#ifndef METS_TF_ALLOCATOR_TF_ACCESS_RESOLVER_H_
#define METS_TF_ALLOCATOR_TF_ACCESS_RESOLVER_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_allocator/core/device_memory.h"
#include "tf_allocator/core/kernel_table.h"
#include "tf_allocator/core/op_scope.h"
#include "tf_allocator/tf/looked_at_variables.h"

namespace mets {

// What a kernel's inputs name.
struct Inputs {
  AccessList accesses;
  // A resource that is no variable, or a variant that is no list: what the op
  // takes in may be kept in it.
  bool keeps = false;
};

// Looks at the inputs and adds their buffers, variables resolved, to `inputs`,
// and those of lists' elements where the op reads them.
// Takes a variable's lock only while it reads the address, and keeps no
// reference to a tensor: a reference would turn updates in place into copies.
// What was held while something kept it becomes movable where nothing does.
void ResolveInputs(DeviceMemory* memory, const KernelState& state,
                   tensorflow::OpKernelContext* context, Inputs* inputs);

// Whether ReadVariableOp copies the variable instead of handing on its tensor.
bool ReadingCopies(tensorflow::OpKernelContext* context);

// After a ReadVariableOp whose variable Python may look at next.
void NoteLookedAt(tensorflow::OpKernelContext* context,
                  LookedAtVariables* variables);

// Ends the op with METS' text.
void FailForMemory(tensorflow::OpKernelContext* context,
                   const std::string& error);

// A number that is the same when all inputs have the same sizes.
uint64_t InputSignature(const KernelState& state,
                        tensorflow::OpKernelContext* context);

// The buffer's address as it was allocated (tensors may be slices); null when
// the tensor is not in METS' memory.
void* BufferOf(const DeviceMemory& memory, const tensorflow::Tensor& tensor);

// Whether METS may move the tensor's bytes while nobody uses them: not where
// they have constructors (strings, variants, resource handles), nor where they
// are of an array that a program has got from TensorFlow and passes to it again.
// REQUIRES: the tensor has a buffer.
bool MayMove(const tensorflow::Tensor& tensor);

// Makes the variables among `accesses` movable that were held until an op names
// them.
void SettleVariables(DeviceMemory* memory, const AccessList& accesses,
                     int64_t step);

// Makes the inputs that are held until an op names them movable, and holds for
// good those that may not move. Of an op that is a kKeep here it holds the
// others while the op keeps them, with all that is in lists. This and what else
// holds sets the op's status where METS has no memory to bring back what is to
// be held.
void SettleInputs(DeviceMemory* memory, OpKind kind,
                  tensorflow::OpKernelContext* context);

// After the kernel: outputs stay movable or become so, and an input announced
// as read that turned into an output is announced as written. What lists have
// that may not move is held for good.
void SettleOutputs(DeviceMemory* memory, OpScope* scope,
                   const AccessList& accesses,
                   tensorflow::OpKernelContext* context);

// A buffer that the op made and put into a variable stays movable, too, or
// becomes so.
void SettleNewVariables(DeviceMemory* memory, OpScope* scope,
                        tensorflow::OpKernelContext* context);

// What a graph returns stays until an op of another run names it, and what an
// op outside of graphs has made until any does: it may be looked at without
// one. Elements of an input pipeline are such, and what Python gets.
void HoldReturned(DeviceMemory* memory, tensorflow::OpKernelContext* context);
void HoldOutputs(DeviceMemory* memory, tensorflow::OpKernelContext* context);

// As SettleOutputs, for an op that keeps tensors: an output that something else
// refers to is held while it does, and so is what lists have.
void SettleKeptOutputs(DeviceMemory* memory,
                       tensorflow::OpKernelContext* context);

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_ACCESS_RESOLVER_H_
