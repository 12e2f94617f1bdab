#include "tf_allocator/core/op_kind.h"

#include <algorithm>
#include <iterator>

namespace mets {
namespace {

// These lists are sorted, so that a type is found by binary search.
constexpr std::string_view kPassTypes[] = {
    "Bitcast",
    "BroadcastGradientArgs",
    "Case",
    "ConcatOffset",
    "Const",
    "ControlTrigger",
    "DestroyResourceOp",
    "EnsureShape",
    "Enter",
    "Exit",
    "ExpandDims",
    "For",
    "GuaranteeConst",
    "HostConst",
    "Identity",
    "IdentityN",
    "If",
    "IsVariableInitialized",
    "LoopCond",
    "MapDefun",
    "Merge",
    "NextIteration",
    "NoOp",
    "PartitionedCall",
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Rank",
    "Recv",
    "RefEnter",
    "RefExit",
    "RefIdentity",
    "RefMerge",
    "RefNextIteration",
    "RefSelect",
    "RefSwitch",
    "RemoteCall",
    "Reshape",
    "Send",
    "Shape",
    "ShapeN",
    "Size",
    "Squeeze",
    "StatefulPartitionedCall",
    "StatelessCase",
    "StatelessIf",
    "StatelessWhile",
    "StopGradient",
    "Switch",
    "SymbolicGradient",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
    "While",
    "_Arg",
    "_ArrayToList",
    "_DeviceArg",
    "_EagerConst",
    "_HostRecv",
    "_HostSend",
    "_If",
    "_ListToArray",
    "_Recv",
    "_Send",
    "_SwitchN",
    "_VarHandlesOp",
    "_While",
};

// Anything that keeps tensors under a resource or a variant is found by the
// types of its inputs; this list has what those do not show, and what waits for
// other ops.
constexpr std::string_view kKeepTypes[] = {
    "Batch",
    "BatchFunction",
    "EagerPyFunc",
    "GetSessionHandle",
    "GetSessionHandleV2",
    "GetSessionTensor",
    "ImmutableConst",
    "LookupTableFind",
    "LookupTableImport",
    "LookupTableInsert",
    "MutableDenseHashTable",
    "PyFunc",
    "PyFuncStateless",
    "Stage",
    "StagePeek",
    "TemporaryVariable",
    "Unbatch",
    "UnbatchGrad",
    "Unstage",
    "_ParallelConcatStart",
    "_ParallelConcatUpdate",
};

// Of AddN and ZerosLike, which are for other tensors, too, this is what they do
// with variants.
constexpr std::string_view kPassElementsTypes[] = {
    "EmptyTensorList",    "TensorListConcatLists", "TensorListElementShape",
    "TensorListGetItem",  "TensorListLength",      "TensorListPopBack",
    "TensorListPushBack", "TensorListReserve",     "TensorListResize",
    "TensorListSetItem",
};

constexpr std::string_view kMakeElementsTypes[] = {
    "TensorListFromTensor",
    "TensorListPushBackBatch",
    "TensorListScatter",
    "TensorListScatterIntoExistingList",
    "TensorListScatterV2",
    "TensorListSplit",
    "ZerosLike",
};

constexpr std::string_view kReadElementsTypes[] = {
    "AddN",
    "TensorListConcat",
    "TensorListConcatV2",
    "TensorListGather",
    "TensorListStack",
};

constexpr std::string_view kKeepPrefixes[] = {
    "Accumulator",
    "Anonymous",
    "Barrier",
    "Iterator",
    "LookupTable",
    "InitializeTable",
    "MapStage",
    "MapUnstage",
    "MultiDevice",
    "MutableHashTable",
    "MutexLock",
    "OneShotIterator",
    "OptionalGetValue",
    "OrderedMap",
    "ParallelDynamic",
    "Queue",
    "Reader",
    "RecordInput",
    "Rpc",
    "SparseAccumulator",
    "Stack",
    "TensorArray",
    "XlaRecv",
    "XlaSend",
    "_Scoped",
};

template <size_t n>
constexpr bool Sorted(const std::string_view (&list)[n]) {
  for (size_t i = 1; i < n; ++i) {
    if (!(list[i - 1] < list[i])) return false;
  }
  return true;
}
static_assert(Sorted(kPassTypes) && Sorted(kKeepTypes) &&
              Sorted(kPassElementsTypes) && Sorted(kMakeElementsTypes) &&
              Sorted(kReadElementsTypes));

template <size_t n>
bool Has(const std::string_view (&list)[n], std::string_view type) {
  return std::binary_search(std::begin(list), std::end(list), type);
}

bool HasPrefix(std::string_view type, std::string_view prefix) {
  return type.substr(0, prefix.size()) == prefix;
}

bool KeepsByName(std::string_view type) {
  if (Has(kKeepTypes, type)) return true;
  for (std::string_view prefix : kKeepPrefixes) {
    if (HasPrefix(type, prefix)) return true;
  }
  return type.find("Dataset") != std::string_view::npos ||
         type.find("FromTensorsMap") != std::string_view::npos ||
         type.find("ToTensorsMap") != std::string_view::npos;
}

}  // namespace

OpKind KindOfOp(std::string_view type) {
  if (type == "ReadVariableOp") return OpKind::kReadVariable;
  if (type == "_Retval" || type == "_DeviceRetval") return OpKind::kReturn;
  if (Has(kPassTypes, type)) return OpKind::kPass;
  if (HasPrefix(type, "Collective")) return OpKind::kCollect;
  return KeepsByName(type) ? OpKind::kKeep : OpKind::kCompute;
}

OpKind KindOfVariantOp(std::string_view type) {
  if (Has(kPassElementsTypes, type)) return OpKind::kPassElements;
  if (Has(kMakeElementsTypes, type)) return OpKind::kMakeElements;
  if (Has(kReadElementsTypes, type)) return OpKind::kReadElements;
  const OpKind kind = KindOfOp(type);
  return kind == OpKind::kCompute ? OpKind::kKeep : kind;
}

VariableUse VariableUseOfOp(std::string_view type) {
  if (type == "AssignVariableOp") return VariableUse::kReplace;
  if (type == "ReadVariableOp" || type == "_ReadVariablesOp" ||
      type == "ResourceGather" || type == "ResourceGatherNd") {
    return VariableUse::kRead;
  }
  return VariableUse::kWrite;
}

}  // namespace mets
