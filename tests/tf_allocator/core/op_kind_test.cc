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

TEST(OpKindTest, OpsThatTakeVariantsKeepThemUnlessTheyAreOfLists) {
  EXPECT_EQ(KindOfVariantOp("OptionalFromValue"), OpKind::kKeep);
  EXPECT_EQ(KindOfVariantOp("Pack"), OpKind::kKeep);
  EXPECT_EQ(KindOfVariantOp("Identity"), OpKind::kPass);
  EXPECT_EQ(KindOfVariantOp("_Retval"), OpKind::kReturn);
  for (const char* type : {"TensorListGetItem", "TensorListSetItem",
                           "EmptyTensorList", "TensorListConcatLists"}) {
    EXPECT_EQ(KindOfVariantOp(type), OpKind::kPassElements) << type;
  }
  for (const char* type :
       {"TensorListFromTensor", "TensorListScatterV2", "ZerosLike"}) {
    EXPECT_EQ(KindOfVariantOp(type), OpKind::kMakeElements) << type;
  }
  for (const char* type :
       {"TensorListStack", "TensorListConcatV2", "TensorListGather", "AddN"}) {
    EXPECT_EQ(KindOfVariantOp(type), OpKind::kReadElements) << type;
  }
}

TEST(OpKindTest, AddNAndZerosLikeAreOfOtherTensorsToo) {
  EXPECT_EQ(KindOfOp("AddN"), OpKind::kCompute);
  EXPECT_EQ(KindOfOp("ZerosLike"), OpKind::kCompute);
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
