// OpScope and DeviceMemory on the fake libmets.
#include "tf_allocator/core/op_scope.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tf_allocator/core/device_memory.h"

namespace mets {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kStep = 7;
constexpr uint64_t kPool = 64 * kMiB;

// The fake is one per process, so all tests share it.
DeviceMemory& Memory() {
  static DeviceMemory* const memory = [] {
    setenv("FAKE_METS_EVICT", "1", 1);
    setenv("FAKE_METS_POOL", std::to_string(kPool).c_str(), 1);
    MetsApi api;
    std::string error;
    if (!LoadMetsApi(FAKE_METS, &api, &error)) ADD_FAILURE() << error;
    std::unique_ptr<DeviceMemory> opened =
        DeviceMemory::Open(api, nullptr, "host", &error);
    if (opened == nullptr) ADD_FAILURE() << error;
    return opened.release();
  }();
  return *memory;
}

class OpScopeTest : public ::testing::Test {
 protected:
  static mets_buffer_info Info(const void* address) {
    mets_buffer_info info = METS_BUFFER_INFO_INIT;
    EXPECT_EQ(memory_.api().find(memory_.device(), address, &info), METS_OK);
    return info;
  }
  static mets_stats_t Stats() {
    mets_stats_t stats = {};
    stats.size = sizeof(stats);
    EXPECT_TRUE(memory_.Stats(&stats));
    return stats;
  }
  static void* Allocate(uint64_t bytes) {
    void* address = nullptr;
    std::string error;
    EXPECT_EQ(memory_.Allocate(bytes, 0, &address, &error),
              DeviceMemory::Result::kOk)
        << error;
    return address;
  }
  // Runs an op that names `input` (may be null) and allocates; the buffer is an
  // output or stays the op's own.
  void* RunOp(const void* input, uint64_t bytes, bool output) {
    OpScope scope(&memory_, &state_);
    AccessList accesses;
    if (input != nullptr) accesses.Add(input, METS_READ);
    std::string error;
    EXPECT_EQ(scope.Begin(&accesses, 1, &error), OpScope::BeginResult::kOk);
    scope.Enter();
    void* made = bytes > 0 ? Allocate(bytes) : nullptr;
    if (made != nullptr) std::memset(made, 7, bytes);
    scope.Leave();
    if (output) {
      EXPECT_TRUE(scope.NoteOutput(made));
    }
    scope.End();
    return made;
  }
  static void Free(void* address) { memory_.Free(address); }

  static DeviceMemory& memory_;
  KernelState state_{this, 0, OpKind::kCompute, VariableUse::kWrite, "MatMul"};
};
DeviceMemory& OpScopeTest::memory_ = Memory();

TEST_F(OpScopeTest, OutputsMayMoveAndComeBackWithTheirBytes) {
  void* buffer = RunOp(nullptr, kMiB, true);
  EXPECT_EQ(Info(buffer).mobility, METS_MOVABLE);
  EXPECT_EQ(Info(buffer).resident, 0);
  const uint64_t unobserved = Stats().unobserved_accesses_total;
  {
    OpScope scope(&memory_, &state_);
    AccessList accesses;
    accesses.Add(buffer, METS_READ);
    std::string error;
    ASSERT_EQ(scope.Begin(&accesses, 2, &error), OpScope::BeginResult::kOk);
    EXPECT_EQ(static_cast<char*>(buffer)[kMiB - 1], 7);
    scope.End();
  }
  EXPECT_EQ(Stats().unobserved_accesses_total, unobserved);
  Free(buffer);
}

TEST_F(OpScopeTest, WhatAnOpKeepsIsHeldUntilAnotherNamesIt) {
  void* buffer = RunOp(nullptr, kMiB, false);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  memory_.MakeMovable(buffer, kStep);
  EXPECT_EQ(Info(buffer).mobility, METS_MOVABLE);
  memory_.HoldForGood(buffer, {"Test", "for good"});
  memory_.MakeMovable(buffer, kStep);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

// More than an op's outputs are followed.
TEST_F(OpScopeTest, WhatIsMadeForAListMayMove) {
  for (const OpKind kind : {OpKind::kCompute, OpKind::kPassElements,
                            OpKind::kMakeElements, OpKind::kReadElements}) {
    KernelState state(&kind, 0, kind, VariableUse::kWrite, "TensorListSplit");
    OpScope scope(&memory_, &state);
    AccessList accesses;
    std::string error;
    ASSERT_EQ(scope.Begin(&accesses, 1, &error), OpScope::BeginResult::kOk);
    scope.Enter();
    std::vector<void*> made(40);
    for (void*& element : made) element = Allocate(kMiB);
    for (void* element : made) std::memset(element, 7, kMiB);
    scope.Leave();
    scope.End();
    Need need;
    ASSERT_TRUE(state.needs()->Find(1, &need));
    EXPECT_EQ(need.TotalBytes(), made.size() * kMiB);
    for (void* element : made) {
      EXPECT_EQ(Info(element).mobility,
                kind == OpKind::kCompute ? METS_HELD : METS_MOVABLE);
      Free(element);
    }
  }
}

TEST_F(OpScopeTest, WhatIsKeptIsHeldUntilAnOpNamesItThatNothingElseHas) {
  void* buffer = RunOp(nullptr, kMiB, true);
  bool alone = false;
  const auto name = [&](const void* owner) {
    memory_.MakeMovable(buffer, kStep);
    memory_.NotKept(buffer, owner, [&alone] { return alone; });
    return Info(buffer).mobility;
  };
  memory_.HoldWhileKept(buffer, &alone, {"Test", "may keep its input"});
  EXPECT_EQ(name(&alone), METS_HELD);
  alone = true;
  EXPECT_EQ(name(&buffer), METS_HELD);
  EXPECT_EQ(name(&alone), METS_MOVABLE);
  // Also where it was held before until an op names it, and will be.
  memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, kStep + 1);
  memory_.HoldWhileKept(buffer, &alone, {"Test", "may keep its input"});
  memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, kStep + 1);
  alone = false;
  EXPECT_EQ(name(&alone), METS_HELD);
  alone = true;
  EXPECT_EQ(name(&alone), METS_MOVABLE);
  // What is held for good stays so.
  memory_.HoldForGood(buffer, {"Test", "for good"});
  memory_.HoldWhileKept(buffer, &alone, {"Test", "may keep its input"});
  EXPECT_EQ(name(&alone), METS_HELD);
  Free(buffer);
}

TEST_F(OpScopeTest, WhatIsKeptByTwoOwnersIsHeldForGood) {
  void* buffer = RunOp(nullptr, kMiB, true);
  const char owners[2] = {};
  for (const char& owner : owners) {
    memory_.HoldWhileKept(buffer, &owner, {"Test", "may keep its input"});
  }
  for (const char& owner : owners) {
    memory_.NotKept(buffer, &owner, [] { return true; });
  }
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

TEST_F(OpScopeTest, PartsOfABufferThatAreKeptHoldItForGood) {
  void* buffer = RunOp(nullptr, kMiB, true);
  char* part = static_cast<char*>(buffer) + 4096;
  memory_.HoldWhileKept(part, part, {"Test", "may keep its input"});
  memory_.NotKept(part, part, [] { return true; });
  memory_.HoldWhileKept(buffer, buffer, {"Test", "may keep its input"});
  memory_.NotKept(buffer, buffer, [] { return true; });
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

// An op may name it, and find that it may move, just before another keeps it.
TEST_F(OpScopeTest, WhatIsKeptWhileOthersNameItStaysHeld) {
  void* buffer = RunOp(nullptr, kMiB, true);
  std::atomic<bool> kept{false};
  std::atomic<bool> stop{false};
  std::thread others([&] {
    while (!stop.load()) {
      memory_.MakeMovable(buffer, kStep);
      memory_.NotKept(buffer, &kept, [&kept] { return !kept.load(); });
    }
  });
  int moved = 0;
  for (int i = 0; i < 20000; ++i) {
    memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"});
    kept.store(true);
    memory_.HoldWhileKept(buffer, &kept, {"Test", "may keep its input"});
    moved += Info(buffer).mobility != METS_HELD;
    kept.store(false);
  }
  stop.store(true);
  others.join();
  EXPECT_EQ(moved, 0);
  Free(buffer);
}

// A run returns what an earlier one had returned, while its own op names it.
TEST_F(OpScopeTest, WhatIsReturnedWhileItIsNamedStaysHeld) {
  constexpr int64_t kRuns = 5000;
  void* buffer = RunOp(nullptr, kMiB, true);
  std::atomic<int64_t> run{0}, named{0};
  std::thread op([&] {
    for (int64_t i = 1; i <= kRuns; ++i) {
      while (run.load() < i) {
      }
      memory_.MakeMovable(buffer, i);
      named.store(i);
    }
  });
  int moved = 0;
  for (int64_t i = 1; i <= kRuns; ++i) {
    run.store(i);
    memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, i);
    while (named.load() < i) {
    }
    moved += Info(buffer).mobility != METS_HELD;
  }
  op.join();
  EXPECT_EQ(moved, 0);
  Free(buffer);
}

TEST_F(OpScopeTest, WhatAGraphReturnsIsHeldUntilAnotherRunNamesIt) {
  void* buffer = RunOp(nullptr, kMiB, true);
  memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, kStep);
  memory_.MakeMovable(buffer, kStep);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  // Also where it was held before for another reason.
  memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, kStep + 1);
  memory_.MakeMovable(buffer, kStep + 1);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  memory_.MakeMovable(buffer, kStep);
  EXPECT_EQ(Info(buffer).mobility, METS_MOVABLE);
  // What is held for good stays so.
  memory_.HoldForGood(buffer, {"Test", "for good"});
  memory_.HoldUntilNamed(buffer, {"_Retval", "is returned"}, kStep);
  memory_.MakeMovable(buffer, kStep + 1);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

TEST_F(OpScopeTest, AllocationsOutsideOpsAreHeld) {
  void* buffer = Allocate(kMiB);
  EXPECT_TRUE(memory_.Owns(buffer));
  EXPECT_TRUE(memory_.Owns(static_cast<char*>(buffer) + kMiB - 1));
  EXPECT_FALSE(memory_.Owns(&buffer));
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

TEST_F(OpScopeTest, AnOpThatTouchesNothingLargeIsNoOpForMets) {
  OpScope scope(&memory_, &state_);
  scope.Enter();
  scope.Leave();
  EXPECT_TRUE(scope.idle());
}

TEST_F(OpScopeTest, TheNeedOfARunIsItsPeak) {
  OpScope scope(&memory_, &state_);
  AccessList accesses;
  std::string error;
  ASSERT_EQ(scope.Begin(&accesses, 9, &error), OpScope::BeginResult::kOk);
  scope.Enter();
  for (int i = 0; i < 40; ++i) Free(Allocate(2 * kMiB));
  void* first = Allocate(kMiB);
  void* second = Allocate(3 * kMiB);
  scope.Leave();
  scope.End();
  Need need;
  ASSERT_TRUE(state_.needs()->Find(9, &need));
  EXPECT_GE(need.TotalBytes(), 4 * kMiB);
  EXPECT_LE(need.TotalBytes(), kPool);
  Free(first);
  Free(second);
}

TEST_F(OpScopeTest, InnerOpsOwnTheirAllocations) {
  OpScope outer(&memory_, &state_);
  outer.Enter();
  void* buffer = RunOp(nullptr, kMiB, true);
  EXPECT_EQ(OpScope::Current(), &outer);
  outer.Leave();
  EXPECT_TRUE(outer.idle());
  EXPECT_EQ(OpScope::Current(), nullptr);
  Free(buffer);
}

TEST_F(OpScopeTest, AFailedAllocationHasMetsText) {
  OpScope scope(&memory_, &state_);
  scope.Enter();
  void* address = nullptr;
  std::string error;
  EXPECT_EQ(memory_.Allocate(2 * kPool, 0, &address, &error),
            DeviceMemory::Result::kFailed);
  scope.Leave();
  EXPECT_TRUE(scope.failed());
  EXPECT_NE(scope.failure().find("fake pool full"), std::string::npos);
}

TEST_F(OpScopeTest, NobodyHearsOfAFailureThatTheOpCanDoWithout) {
  OpScope scope(&memory_, &state_);
  scope.Enter();
  void* address = nullptr;
  std::string error;
  EXPECT_EQ(memory_.Allocate(2 * kPool, 0, &address, &error, /*needed=*/false),
            DeviceMemory::Result::kFailed);
  scope.Leave();
  EXPECT_FALSE(scope.failed());
}

TEST_F(OpScopeTest, AProgramsOwnLimitIsOfWhatItHasAtOnce) {
  memory_.SetOwnLimit(3 * kMiB);
  EXPECT_EQ(memory_.limit_bytes(), 3 * kMiB);
  void* first = Allocate(2 * kMiB);
  void* address = nullptr;
  std::string error;
  EXPECT_EQ(memory_.Allocate(2 * kMiB, 0, &address, &error),
            DeviceMemory::Result::kFailed);
  EXPECT_NE(error.find("to 3 MiB itself: 2 MiB are in use, and 2 MiB more"),
            std::string::npos)
      << error;
  Free(first);
  Free(Allocate(2 * kMiB));
  memory_.SetOwnLimit(0);
  EXPECT_EQ(memory_.limit_bytes(), kPool);
}

TEST_F(OpScopeTest, AnOpThatCannotHaveItsNeedFailsBeforeItRuns) {
  Need need;
  need.Add(2 * kPool);
  state_.needs()->Learn(3, need);
  OpScope scope(&memory_, &state_);
  AccessList accesses;
  std::string error;
  EXPECT_EQ(scope.Begin(&accesses, 3, &error), OpScope::BeginResult::kFailed);
  EXPECT_NE(error.find("op's need"), std::string::npos);
}

TEST_F(OpScopeTest, AForkedChildAllocatesElsewhere) {
  const pid_t child = fork();
  if (child == 0) {
    memory_.ForkedChild();
    void* address = nullptr;
    std::string error;
    const bool elsewhere = memory_.Allocate(kMiB, 0, &address, &error) ==
                           DeviceMemory::Result::kNotHere;
    _exit(elsewhere ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Last: it cannot be taken back.
TEST_F(OpScopeTest, WhatIsHeldAltogetherDoesNotBecomeMovable) {
  memory_.HoldAll();
  void* buffer = RunOp(nullptr, kMiB, true);
  memory_.MakeMovable(buffer, kStep);
  EXPECT_EQ(Info(buffer).mobility, METS_HELD);
  Free(buffer);
}

TEST(AccessListTest, LongListsKeepTheirOrder) {
  AccessList list;
  char bytes[100];
  for (char& byte : bytes) list.Add(&byte, METS_READ);
  ASSERT_EQ(list.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(list[i].address, bytes + i);
  list.Clear();
  EXPECT_TRUE(list.empty());
  list.Add(bytes, METS_WRITE);
  EXPECT_EQ(list[0].kind, METS_WRITE);
}

}  // namespace
}  // namespace mets
