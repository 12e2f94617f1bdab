#include <cstring>
#include <vector>

#include "tests/client/device_fixture.h"

namespace mets::client {
namespace {

class DeviceLendTest : public DeviceFixture {
 protected:
  DeviceLendTest() : DeviceFixture(/*gated=*/false) {
    device_->SendSnapshot(/*last=*/true);
    uplink_.TakeSent();
  }

  // Without writing to it.
  char* Alloc(Bytes bytes) {
    mets_alloc_options options = METS_ALLOC_OPTIONS_INIT;
    options.bytes = bytes.count();
    void* address = nullptr;
    METS_CHECK_OK(device_->Alloc(options, &address));
    return static_cast<char*>(address);
  }
  // What two buffers of a step leave behind: a range of one chunk (16 MiB), and
  // one of several (21 MiB).
  void Step() {
    one_ = DeviceFixture::Alloc(MiB(16), 1);
    several_ = DeviceFixture::Alloc(MiB(21), 2);
    device_->Free(one_);
    device_->Free(several_);
  }
  // The chunks, range by range.
  std::vector<uint64_t> Lend() {
    device_->Lend();
    const std::deque<v1::ClientMessage> sent = uplink_.TakeSent();
    EXPECT_EQ(sent.size(), 1u);
    const v1::Release& release = sent[0].release();
    EXPECT_TRUE(release.lent());
    EXPECT_EQ(release.device(), "host0");
    return {release.chunk_ids().begin(), release.chunk_ids().end()};
  }

  char* one_ = nullptr;
  char* several_ = nullptr;
};

TEST_F(DeviceLendTest, WhatIsFreeIsTheDaemonsUntilTheNextTurn) {
  Step();
  EXPECT_GT(Lend().size(), 2u);
  EXPECT_EQ(uplink_.used(), Bytes());
  EXPECT_EQ(Stats().cached_bytes, 0u);
  device_->Lend();  // There is nothing left to lend.
  EXPECT_TRUE(uplink_.TakeSent().empty());
}

TEST_F(DeviceLendTest, LentRangesComeBackMapped) {
  Step();
  uplink_.Regrant(*device_, Lend());
  EXPECT_EQ(Stats().cached_bytes, static_cast<uint64_t>(MiB(37).count()));
  const int acquires = uplink_.acquires();
  EXPECT_EQ(Alloc(MiB(21)), several_);
  EXPECT_EQ(Alloc(MiB(16)), one_);
  EXPECT_EQ(uplink_.acquires(), acquires);
  EXPECT_EQ(Stats().cache_hits_total, 2u);
  // Inside a domain nobody zeroes it.
  EXPECT_EQ(one_[0], 1);
  EXPECT_EQ(several_[MiB(20).count()], 2);
}

TEST_F(DeviceLendTest, OfARangeThatComesBackInPartTheRestCanBeUsed) {
  Step();
  std::vector<uint64_t> lent = Lend();
  ASSERT_GT(lent.size(), 2u);
  lent.pop_back();  // The smallest piece of the second range.
  uplink_.Regrant(*device_, lent);
  EXPECT_EQ(Stats().cached_bytes,
            static_cast<uint64_t>(uplink_.used().count()));
  const int acquires = uplink_.acquires();
  EXPECT_EQ(Alloc(MiB(16)), one_);
  char* rest = Alloc(MiB(16));
  EXPECT_NE(rest, one_);
  std::memset(rest, 3, MiB(16).count());
  EXPECT_EQ(uplink_.acquires(), acquires);
  EXPECT_EQ(one_[0], 1);
}

TEST_F(DeviceLendTest, AChunkThatIsGrantedOtherwiseEndsTheLoanOfItsRange) {
  Step();
  std::vector<uint64_t> lent = Lend();
  // FakeUplink grants the chunk that it got back last: of the second range.
  char* other = Alloc(MiB(16));
  EXPECT_EQ(uplink_.used(), MiB(16));
  std::memset(other, 4, MiB(16).count());
  // The first range is still lent as a whole.
  uplink_.Regrant(*device_, {lent[0]});
  const int acquires = uplink_.acquires();
  EXPECT_EQ(Alloc(MiB(16)), one_);
  EXPECT_EQ(uplink_.acquires(), acquires);
  EXPECT_EQ(one_[0], 1);
  EXPECT_EQ(other[0], 4);
}

TEST_F(DeviceLendTest, AForgottenChunkIsUnmappedFirst) {
  Step();
  const std::vector<uint64_t> lent = Lend();
  for (uint64_t id : lent) EXPECT_TRUE(device_->Forget(id));
  for (uint64_t id : lent) EXPECT_FALSE(device_->KnowsChunk(id));
}

TEST_F(DeviceLendTest, ABrokenStreamEndsEveryLoan) {
  Step();
  const std::vector<uint64_t> lent = Lend();
  device_->Mute();
  device_->Lend();
  device_->SendSnapshot(/*last=*/true);
  EXPECT_EQ(uplink_.TakeSent()[0].snapshot().chunk_ids_size(), 0);
  uplink_.Regrant(*device_, {lent[0]});
  EXPECT_NE(Alloc(MiB(16)), nullptr);
  EXPECT_EQ(uplink_.used(), MiB(16));
}

TEST_F(DeviceLendTest, NothingIsLentWhileNobodyListens) {
  Step();
  device_->Mute();
  device_->Lend();
  EXPECT_EQ(Stats().cached_bytes, static_cast<uint64_t>(MiB(37).count()));
}

}  // namespace
}  // namespace mets::client
