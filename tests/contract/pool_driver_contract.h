// What every PoolDriver must do. Include once, then
// INSTANTIATE_TEST_SUITE_P(…, PoolDriverContract, Values(backend…), Name).
#ifndef METS_TESTS_CONTRACT_POOL_DRIVER_CONTRACT_H_
#define METS_TESTS_CONTRACT_POOL_DRIVER_CONTRACT_H_

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "tests/contract/backends.h"

namespace mets {

class PoolDriverContract : public ::testing::TestWithParam<Backend> {
 protected:
  static constexpr Bytes kTotal = MiB(64);

  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
    fds_before_ = CountOpenFds();
    pool_ = GetParam().make_pool(kTotal);
  }
  void TearDown() override {
    if (!GetParam().missing.empty()) return;
    pool_.reset();
    EXPECT_EQ(CountOpenFds(), fds_before_) << "descriptors leaked";
  }
  Bytes LargestClass() const { return pool_->info().chunk_classes.back(); }

  std::unique_ptr<PoolDriver> pool_;
  int fds_before_ = 0;
};

TEST_P(PoolDriverContract, ClassesAscendAndEachDividesTheNext) {
  const std::vector<Bytes> classes = pool_->info().chunk_classes;
  ASSERT_FALSE(classes.empty());
  EXPECT_GT(classes.front(), Bytes());
  for (size_t i = 1; i < classes.size(); ++i) {
    EXPECT_LT(classes[i - 1], classes[i]);
    EXPECT_EQ(classes[i].count() % classes[i - 1].count(), 0);
  }
}

TEST_P(PoolDriverContract, InfoTellsKindAndSize) {
  EXPECT_FALSE(pool_->info().kind.empty());
  EXPECT_GE(pool_->info().total, kTotal);
}

TEST_P(PoolDriverContract, ChunkOfEachClassCanBeMadeAndReleased) {
  for (Bytes size : pool_->info().chunk_classes) {
    absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(size);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    EXPECT_TRUE(chunk->ok());
    EXPECT_NE(fcntl(chunk->get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
  }
}

TEST_P(PoolDriverContract, OtherSizesAreRefused) {
  for (Bytes size : {Bytes(0), Bytes(-1), Bytes(1), LargestClass() * 2,
                     LargestClass() + Bytes(1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(pool_->CreateChunk(size).status()))
        << size.count();
  }
}

TEST_P(PoolDriverContract, BlocksAreAllocatedAtCreation) {
  if (!GetParam().is_host) GTEST_SKIP() << "chunks have no blocks here";
  for (Bytes size : pool_->info().chunk_classes) {
    absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(size);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    struct stat info;
    ASSERT_EQ(fstat(chunk->get(), &info), 0);
    EXPECT_EQ(info.st_size, size.count());
    EXPECT_EQ(info.st_blocks * 512, size.count());
    EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
  }
}

TEST_P(PoolDriverContract, ChunkCannotChangeItsSize) {
  if (!GetParam().is_host) GTEST_SKIP() << "chunks are no files here";
  absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(LargestClass());
  ASSERT_TRUE(chunk.ok());
  EXPECT_NE(ftruncate(chunk->get(), 0), 0);
  EXPECT_NE(ftruncate(chunk->get(), 2 * LargestClass().count()), 0);
  EXPECT_NE(fcntl(chunk->get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
}

TEST_P(PoolDriverContract, MoreThanTheDeviceIsRefusedAndReleasedMemoryReturns) {
  std::vector<UniqueFd> chunks;
  absl::Status refused;
  while (chunks.size() < 10000) {
    absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(LargestClass());
    refused = chunk.status();
    if (!chunk.ok()) break;
    chunks.push_back(*std::move(chunk));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_GE(static_cast<int64_t>(chunks.size()), kTotal / LargestClass());
  ASSERT_TRUE(pool_->ReleaseChunk(std::move(chunks.back())).ok());
  chunks.pop_back();
  absl::StatusOr<UniqueFd> again = pool_->CreateChunk(LargestClass());
  EXPECT_TRUE(again.ok()) << again.status();
  if (again.ok()) chunks.push_back(*std::move(again));
  for (UniqueFd& chunk : chunks) {
    EXPECT_TRUE(pool_->ReleaseChunk(std::move(chunk)).ok());
  }
}

TEST_P(PoolDriverContract, FreeBytesFollowsTheChunks) {
  absl::StatusOr<Bytes> before = pool_->FreeBytes();
  ASSERT_TRUE(before.ok()) << before.status();
  absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(LargestClass());
  ASSERT_TRUE(chunk.ok());
  EXPECT_LE(*pool_->FreeBytes(), *before - LargestClass());
  EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
}

TEST_P(PoolDriverContract, ChunkOfAnEarlierDaemonIsAdopted) {
  absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(LargestClass());
  ASSERT_TRUE(chunk.ok());
  std::unique_ptr<PoolDriver> later = GetParam().make_pool(kTotal);
  absl::StatusOr<UniqueFd> adopted =
      later->AdoptChunk(UniqueFd(dup(chunk->get())), LargestClass());
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_TRUE(later->ReleaseChunk(*std::move(adopted)).ok());
  EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
}

TEST_P(PoolDriverContract, WhatIsNoChunkIsNotAdopted) {
  const auto adopt = [this](UniqueFd fd, Bytes size) {
    return pool_->AdoptChunk(std::move(fd), size).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(
      adopt(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)), LargestClass())));
  EXPECT_TRUE(absl::IsInvalidArgument(adopt(UniqueFd(), LargestClass())));
  absl::StatusOr<UniqueFd> chunk = pool_->CreateChunk(LargestClass());
  ASSERT_TRUE(chunk.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      adopt(UniqueFd(dup(chunk->get())), pool_->info().chunk_classes[0])));
  EXPECT_TRUE(pool_->ReleaseChunk(*std::move(chunk)).ok());
}

TEST_P(PoolDriverContract, ReleasingNothingIsAnError) {
  EXPECT_TRUE(absl::IsInvalidArgument(pool_->ReleaseChunk(UniqueFd())));
}

TEST_P(PoolDriverContract, ExtentHasItsBlocks) {
  absl::StatusOr<UniqueFd> extent = pool_->CreateExtent(MiB(3));
  ASSERT_TRUE(extent.ok()) << extent.status();
  struct stat info;
  ASSERT_EQ(fstat(extent->get(), &info), 0);
  EXPECT_EQ(info.st_size, MiB(3).count());
  EXPECT_EQ(info.st_blocks * 512, MiB(3).count());
  EXPECT_TRUE(absl::IsInvalidArgument(pool_->CreateExtent(Bytes()).status()));
}

TEST_P(PoolDriverContract, ExtentOfAnEarlierDaemonIsAdopted) {
  absl::StatusOr<UniqueFd> extent = pool_->CreateExtent(MiB(3));
  ASSERT_TRUE(extent.ok()) << extent.status();
  const auto adopt = [this](int fd, Bytes size) {
    return pool_->AdoptExtent(UniqueFd(dup(fd)), size).status();
  };
  EXPECT_TRUE(adopt(extent->get(), MiB(3)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(adopt(extent->get(), MiB(2))));
  const UniqueFd other(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(absl::IsInvalidArgument(adopt(other.get(), MiB(3))));
}

}  // namespace mets

#endif  // METS_TESTS_CONTRACT_POOL_DRIVER_CONTRACT_H_
