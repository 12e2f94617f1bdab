// What only HostMapDriver does; the rest is in tests/contract.
#include "common/device/host/host_map_driver.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/device/host/host_pool_driver.h"
#include "tests/contract/backends.h"

namespace mets {
namespace {

class HostMapDriverTest : public ::testing::Test {
 protected:
  ChunkHandle MakeChunk(Bytes size) {
    absl::StatusOr<UniqueFd> fd = pool_.CreateChunk(size);
    METS_CHECK_OK(fd);
    return *map_->ImportChunk(*std::move(fd), size);
  }

  HostPoolDriver pool_{HostPoolOptions{MiB(256)}};
  std::unique_ptr<HostMapDriver> map_ =
      *HostMapDriver::Create(HostMapOptions());
};

TEST_F(HostMapDriverTest, InfoTellsGranularityAndSlabThreshold) {
  EXPECT_EQ(map_->info().kind, "host");
  EXPECT_EQ(map_->info().granularity, KiB(64));
  EXPECT_EQ(map_->info().slab_threshold, MiB(1));
}

TEST_F(HostMapDriverTest, ChunksAndExtentsNeedNoDescriptors) {
  const int before = CountOpenFds();
  for (int i = 0; i < 100; ++i) (void)MakeChunk(KiB(64));
  EXPECT_TRUE(map_->RegisterExtent(*pool_.CreateExtent(MiB(1)), MiB(1)).ok());
  EXPECT_EQ(CountOpenFds(), before);
}

TEST_F(HostMapDriverTest, RegionIsSmallerWhereAddressesAreScarce) {
  HostMapOptions options;
  options.region_size = GiB(1) * (1 << 19);  // More than the machine has.
  absl::StatusOr<std::unique_ptr<HostMapDriver>> map =
      HostMapDriver::Create(options);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_GE((*map)->region_end() - (*map)->region_begin(), GiB(8).count());
}

sigjmp_buf* landing = nullptr;
void OnFault(int) { siglongjmp(*landing, 1); }

// True when `access` raises SIGSEGV.
template <typename F>
bool Faults(F access) {
  sigjmp_buf here;
  landing = &here;
  struct sigaction action = {};
  struct sigaction before;
  action.sa_handler = OnFault;
  sigaction(SIGSEGV, &action, &before);
  const bool faulted = sigsetjmp(here, 1) != 0;
  if (!faulted) access();
  sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

TEST_F(HostMapDriverTest, AccessesWithoutMemoryFault) {
  char* range = *map_->ReserveRange(MiB(4));
  volatile char* place = range + 4096;
  const ChunkHandle chunk = MakeChunk(MiB(4));
  const auto write = [place] { *place = 1; };
  const auto read = [place] { (void)*place; };
  EXPECT_TRUE(Faults(write));
  ASSERT_TRUE(map_->Map(range, {chunk}).ok());
  EXPECT_FALSE(Faults(write));
  ASSERT_TRUE(map_->BlockAccess(range, {chunk}).ok());
  EXPECT_TRUE(Faults(write));
  EXPECT_TRUE(Faults(read));
  ASSERT_TRUE(map_->AllowAccess(range, {chunk}).ok());
  EXPECT_FALSE(Faults(read));
  ASSERT_TRUE(map_->Unmap(range, {chunk}).ok());
  EXPECT_TRUE(Faults(read));
}

TEST_F(HostMapDriverTest, RestoredMemoryTakesNoPageFaults) {
  if (HostChunk::BestMethod() != HostChunk::Method::kMove) {
    GTEST_SKIP() << "this kernel cannot move page tables";
  }
  const Bytes size = MiB(16);
  const ChunkHandle chunk = MakeChunk(size);
  char* range = *map_->ReserveRange(size);
  const ExtentHandle extent =
      *map_->RegisterExtent(*pool_.CreateExtent(size), size);
  const std::vector<ExtentPiece> slot = {{extent, Bytes(), size}};
  ASSERT_TRUE(
      map_->CopyIn(range, {chunk}, slot, size, StreamHandle::kHostOrder).ok());
  const auto faults = [] {
    long minor = 0;
    std::FILE* file = std::fopen("/proc/thread-self/stat", "re");
    EXPECT_EQ(
        std::fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %ld", &minor),
        1);
    std::fclose(file);
    return minor;
  };
  const long before = faults();
  for (int64_t at = 0; at < size.count(); at += 4096) range[at] = 1;
  // AddressSanitizer's shadow of the range takes 512 of its own.
  EXPECT_LT(faults() - before, 2048) << "of 4096 pages";
  ASSERT_TRUE(map_->Unmap(range, {chunk}).ok());
}

TEST_F(HostMapDriverTest, ForgettingAMappedChunkIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ChunkHandle chunk = MakeChunk(KiB(64));
  char* range = *map_->ReserveRange(KiB(64));
  ASSERT_TRUE(map_->Map(range, {chunk}).ok());
  EXPECT_DEATH(map_->ForgetChunk(chunk), "still mapped");
  ASSERT_TRUE(map_->Unmap(range, {chunk}).ok());
}

TEST_F(HostMapDriverTest, ProgramsHaveNoStreamsButHostOrder) {
  int something = 0;
  EXPECT_EQ(*map_->AdoptStream(nullptr), StreamHandle::kHostOrder);
  EXPECT_TRUE(absl::IsUnimplemented(map_->AdoptStream(&something).status()));
}

}  // namespace
}  // namespace mets
