#include "client/src/stream_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/device/forwarding_map_driver.h"
#include "common/device/host/host_map_driver.h"

namespace mets::client {
namespace {

std::unique_ptr<MapDriver> HostDriver() {
  auto driver = HostMapDriver::Create(HostMapOptions{GiB(8)});
  METS_CHECK_OK(driver);
  return *std::move(driver);
}

// Its program's streams are its own host streams; what is recorded and waited
// for is counted.
class StreamDriver : public ForwardingMapDriver {
 public:
  StreamDriver() : ForwardingMapDriver(HostDriver()) {}

  absl::StatusOr<StreamHandle> AdoptStream(void* stream) override {
    absl::MutexLock lock(&mutex_);
    auto [it, is_new] = adopted_.emplace(stream, StreamHandle());
    if (is_new) it->second = *inner().CreateStream();
    return it->second;
  }
  absl::StatusOr<Fence> Record(StreamHandle stream) override {
    absl::MutexLock lock(&mutex_);
    recorded_.insert(stream);
    return inner().Record(stream);
  }
  absl::Status StreamWait(StreamHandle stream, Fence fence) override {
    absl::MutexLock lock(&mutex_);
    ++waits_[stream];
    return inner().StreamWait(stream, fence);
  }

  std::set<StreamHandle> TakeRecorded() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(recorded_, {});
  }
  int waits(StreamHandle stream) {
    absl::MutexLock lock(&mutex_);
    return waits_[stream];
  }

 private:
  absl::Mutex mutex_;
  std::map<void*, StreamHandle> adopted_;
  std::set<StreamHandle> recorded_;
  std::map<StreamHandle, int> waits_;
};

class StreamTableTest : public testing::Test {
 protected:
  // The program's nth stream.
  static mets_stream Nth(uintptr_t n) {
    return reinterpret_cast<mets_stream>(n * 64);
  }
  Stream Find(uintptr_t n) {
    const absl::StatusOr<Stream> stream = streams_.Find(Nth(n));
    METS_CHECK_OK(stream);
    return *stream;
  }

  StreamDriver driver_;
  StreamTable streams_{driver_};
};

TEST_F(StreamTableTest, EachStreamHasItsBitForGood) {
  EXPECT_EQ(streams_.all(), 0u);
  std::set<StreamMask> bits;
  for (int n = 1; n <= 63; ++n) bits.insert(Find(n).bit);
  EXPECT_EQ(bits.size(), 63u);
  EXPECT_EQ(bits.count(kSharedBit), 0u);
  for (int n = 63; n >= 1; --n) {
    const Stream again = Find(n);
    EXPECT_EQ(again.bit, StreamMask{1} << (n - 1));
    EXPECT_EQ(again.handle, *driver_.AdoptStream(Nth(n)));
  }
  EXPECT_EQ(streams_.all(), ~kSharedBit);
}

TEST_F(StreamTableTest, NullIsHostOrderAndKnownToNobody) {
  const absl::StatusOr<Stream> host = streams_.Find(nullptr);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->handle, StreamHandle::kHostOrder);
  EXPECT_EQ(host->bit, 0u);
  EXPECT_EQ(streams_.all(), 0u);
}

TEST_F(StreamTableTest, AStreamIsInOrderWithItself) {
  const Stream a = Find(1), b = Find(2);
  EXPECT_EQ(a.Others(a.bit), 0u);
  EXPECT_EQ(a.Others(a.bit | b.bit), b.bit);
  EXPECT_EQ(Stream().Others(a.bit), a.bit);
}

TEST_F(StreamTableTest, StreamsBeyondTheBitsStandForAll) {
  for (int n = 1; n <= 63; ++n) Find(n);
  const Stream x = Find(64), y = Find(65);
  EXPECT_EQ(x.bit, kSharedBit);
  EXPECT_EQ(y.bit, kSharedBit);
  EXPECT_NE(x.handle, y.handle);
  EXPECT_EQ(Find(64).handle, x.handle);
  EXPECT_EQ(streams_.all(), ~StreamMask{0});
  // Another of them may have used what has the bit.
  EXPECT_EQ(x.Others(kSharedBit), kSharedBit);
  streams_.Order(x, kSharedBit);
  EXPECT_EQ(driver_.waits(x.handle), 64) << "all but itself";
  driver_.TakeRecorded();
  EXPECT_TRUE(streams_.Wait(kSharedBit).ok());
  EXPECT_EQ(driver_.TakeRecorded().size(), 65u);
}

TEST_F(StreamTableTest, OnlyTheStreamsOfTheSetAreWaitedFor) {
  const Stream a = Find(1), b = Find(2), c = Find(3);
  EXPECT_TRUE(streams_.Wait(0).ok());
  EXPECT_TRUE(driver_.TakeRecorded().empty());
  EXPECT_TRUE(streams_.Wait(a.bit | c.bit).ok());
  EXPECT_EQ(driver_.TakeRecorded(),
            (std::set<StreamHandle>{a.handle, c.handle}));
  streams_.Order(b, c.bit);
  EXPECT_EQ(driver_.TakeRecorded(), std::set<StreamHandle>{c.handle});
  EXPECT_EQ(driver_.waits(b.handle), 1);
}

TEST_F(StreamTableTest, WorkOfAnEarlierMomentIsWaitedForAtTheNextMark) {
  const Stream a = Find(1), b = Find(2);
  const StreamTable::Moment before = streams_.moment();
  streams_.Mark();
  EXPECT_EQ(driver_.TakeRecorded(),
            (std::set<StreamHandle>{a.handle, b.handle}));
  EXPECT_TRUE(streams_.Wait(a.bit | b.bit, before).ok());
  streams_.Order(b, a.bit, before);
  EXPECT_EQ(driver_.waits(b.handle), 1);
  EXPECT_TRUE(driver_.TakeRecorded().empty()) << "the mark's fences do";
  EXPECT_TRUE(streams_.Wait(a.bit, streams_.moment()).ok());
  EXPECT_EQ(driver_.TakeRecorded(), std::set<StreamHandle>{a.handle});
  EXPECT_TRUE(streams_.Wait(a.bit).ok());
  EXPECT_EQ(driver_.TakeRecorded(), std::set<StreamHandle>{a.handle});
}

TEST_F(StreamTableTest, MarksAreNotMadeAgainAtOnce) {
  Find(1);
  for (int i = 0; i < 1000; ++i) streams_.Mark();
  const StreamTable::Moment many = streams_.moment();
  EXPECT_GE(many, 1u);
  EXPECT_LT(many, 1000u);
}

TEST_F(StreamTableTest, ThreadsFindTheSameStreams) {
  constexpr int kThreads = 4, kStreams = 80;
  std::vector<std::vector<Stream>> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 1; n <= kStreams; ++n) found[t].push_back(Find(n));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) {
    for (int n = 0; n < kStreams; ++n) {
      EXPECT_EQ(found[t][n].bit, found[0][n].bit);
      EXPECT_EQ(found[t][n].handle, found[0][n].handle);
    }
  }
}

TEST_F(StreamTableTest, StreamsAreRefusedWhereTheProgramHasNone) {
  const std::unique_ptr<MapDriver> host = HostDriver();
  StreamTable streams(*host);
  EXPECT_TRUE(absl::IsInvalidArgument(streams.Find(Nth(1)).status()));
  EXPECT_EQ(streams.FindOrHost(Nth(1)).bit, 0u);
  EXPECT_EQ(streams.all(), 0u);
}

}  // namespace
}  // namespace mets::client
