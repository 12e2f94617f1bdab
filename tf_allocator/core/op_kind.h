// What an op does with the bytes of its tensors, by the op's type. It decides
// whether the op is an op for METS.
#ifndef METS_TF_ALLOCATOR_CORE_OP_KIND_H_
#define METS_TF_ALLOCATOR_CORE_OP_KIND_H_

#include <string_view>

namespace mets {

enum class OpKind {
  // Reads its inputs and writes its outputs while it runs: an op for METS.
  kCompute,
  // Hands tensors on without looking at their bytes (Identity, Switch, Reshape)
  // or only calls others (PartitionedCall, While): nothing to announce.
  kPass,
  // Keeps tensors, or touches them at other times or from other threads than
  // an op's (queues, datasets, Python functions): what it takes in is held, and
  // it is no op for METS.
  kKeep,
  // The same of a collective op, which runs kernels of its own on what it uses:
  // that these name it does not say that it needs no more holding.
  kCollect,
  // Hands on what a graph returns: a pass, too.
  kReturn,
  // ReadVariableOp: a pass in graphs; a read when Python may look next.
  kReadVariable,
  // Those of TensorFlow's tensor lists. A list's elements move as other tensors
  // do: these ops say what they read of them, and whoever else takes a list in
  // keeps what is in it.
  kPassElements,  // Into lists and out of them; may make zeros, no more.
  kMakeElements,  // Reads its other inputs, and puts what it makes into lists.
  kReadElements,  // Reads those of all lists that it takes, and may make some.
};

constexpr bool IsOfLists(OpKind kind) {
  return kind == OpKind::kPassElements || kind == OpKind::kMakeElements ||
         kind == OpKind::kReadElements;
}

// How an op of kind kCompute uses the variables whose handles it takes.
enum class VariableUse {
  kWrite,
  kRead,    // ResourceGather and the like
  kReplace  // AssignVariableOp: the old bytes do not matter
};

// `type` is the op's type ("MatMul"). Unknown types are kCompute.
OpKind KindOfOp(std::string_view type);

// The same for an op among whose inputs or outputs are variants.
OpKind KindOfVariantOp(std::string_view type);

VariableUse VariableUseOfOp(std::string_view type);

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_CORE_OP_KIND_H_
