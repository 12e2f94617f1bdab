#include "tf_allocator/core/kernel_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace mets {
namespace {

class KernelTableTest : public ::testing::Test {
 protected:
  KernelState* Get(const void* kernel, uint64_t identity) {
    return table_.Get(kernel, identity, [&] {
      return std::make_unique<KernelState>(kernel, identity, OpKind::kCompute,
                                           VariableUse::kWrite, "MatMul");
    });
  }
  KernelTable table_;
};

TEST_F(KernelTableTest, AKernelKeepsItsState) {
  int kernel = 0;
  KernelState* state = Get(&kernel, 1);
  EXPECT_EQ(Get(&kernel, 1), state);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_FALSE(state->allocates());
  Need need;
  need.Add(1);
  state->needs()->Learn(0, need);
  EXPECT_TRUE(state->allocates());
}

TEST_F(KernelTableTest, AnotherKernelAtTheSameAddressGetsItsOwnState) {
  int kernel = 0;
  KernelState* state = Get(&kernel, 1);
  KernelState* other = Get(&kernel, 2);
  EXPECT_NE(other, state);
  EXPECT_EQ(Get(&kernel, 2), other);
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(KernelTableTest, ManyKernelsAreFoundByManyThreads) {
  constexpr size_t kKernels = 20000;
  std::vector<uint64_t> kernels(2 * kKernels);
  std::vector<std::vector<KernelState*>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<KernelState*>& mine : found) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < kKernels; ++i) {
        mine.push_back(Get(&kernels[2 * i], 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : found) EXPECT_EQ(mine, found[0]);
  EXPECT_EQ(table_.size(), kKernels);
}

}  // namespace
}  // namespace mets
