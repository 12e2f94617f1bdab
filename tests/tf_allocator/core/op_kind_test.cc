#include "tf_allocator/core/op_kind.h"

#include <gtest/gtest.h>

namespace mets {
namespace {

TEST(OpKindTest, ComputingOpsAreOps) {
  for (const char* type : {"MatMul", "Conv2D", "BatchMatMulV2", "AddV2",
                           "ResourceApplyAdam", "SaveV2", "XlaLaunch"}) {
    EXPECT_EQ(KindOfOp(type), OpKind::kCompute) << type;
  }
}

TEST(OpKindTest, OpsThatHandTensorsOnAreNoOps) {
  for (const char* type : {"Identity", "Switch", "Reshape", "While",
                           "StatefulPartitionedCall", "_Send", "Bitcast"}) {
    EXPECT_EQ(KindOfOp(type), OpKind::kPass) << type;
  }
}

TEST(OpKindTest, WhatGraphsReturnIsKnown) {
  EXPECT_EQ(KindOfOp("_Retval"), OpKind::kReturn);
  EXPECT_EQ(KindOfOp("_DeviceRetval"), OpKind::kReturn);
}

TEST(OpKindTest, OpsThatKeepTensorsAreFoundByNameAndFamily) {
  for (const char* type :
       {"QueueEnqueueV2", "TensorArrayWriteV3", "IteratorGetNext",
        "TensorSliceDataset", "EagerPyFunc", "Batch", "StackPushV2",
        "TakeManySparseFromTensorsMap"}) {
    EXPECT_EQ(KindOfOp(type), OpKind::kKeep) << type;
  }
}

TEST(OpKindTest, CollectivesAreAKindOfTheirOwn) {
  EXPECT_EQ(KindOfOp("CollectiveReduceV2"), OpKind::kCollect);
}

TEST(OpKindTest, VariablesAreReadWrittenOrReplaced) {
  EXPECT_EQ(KindOfOp("ReadVariableOp"), OpKind::kReadVariable);
  EXPECT_EQ(VariableUseOfOp("ResourceGather"), VariableUse::kRead);
  EXPECT_EQ(VariableUseOfOp("AssignVariableOp"), VariableUse::kReplace);
  EXPECT_EQ(VariableUseOfOp("AssignAddVariableOp"), VariableUse::kWrite);
  EXPECT_EQ(VariableUseOfOp("XlaLaunch"), VariableUse::kWrite);
}

}  // namespace
}  // namespace mets
