#include "daemon/app/store/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mets::app {
namespace {

using ::testing::HasSubstr;

constexpr off_t kHeader = 4096;

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    basis_.epoch = Epoch(7);
    basis_.devices = {{"host0", "host", {KiB(64), MiB(1)}}};
    journal_ = *Journal::Create();
  }

  // As the next process finds it.
  absl::StatusOr<Journal::Contents> Found() {
    auto next = Journal::Open(UniqueFd(dup(journal_->fd())));
    if (!next.ok()) return next.status();
    return (*next)->Read();
  }

  uint64_t WordAt(off_t offset) const {
    uint64_t word = 0;
    EXPECT_EQ(pread(journal_->fd(), &word, 8, offset), 8);
    return word;
  }
  void SetWord(off_t offset, uint64_t word) {
    EXPECT_EQ(pwrite(journal_->fd(), &word, 8, offset), 8);
  }
  // Where the frames begin that count.
  off_t Area() const {
    struct stat info;
    EXPECT_EQ(fstat(journal_->fd(), &info), 0);
    const off_t other = kHeader + (info.st_size - kHeader) / 2;
    return WordAt(kHeader) != 0 ? kHeader : other;
  }
  // The offset of the last frame.
  off_t LastFrame() const {
    off_t last = 0;
    for (off_t at = Area(); WordAt(at) != 0;) {
      last = at;
      at += 16 + static_cast<off_t>(WordAt(at)) * 8;
    }
    return last;
  }

  static core::KeptChunk Chunk(uint64_t id) {
    return {ChunkId(id), 0, 1, DomainId(5), SessionId(3), false};
  }

  JournalBasis basis_;
  std::unique_ptr<Journal> journal_;
};

core::KeptState Everything() {
  core::KeptState state;
  core::KeptSession session;
  session.id = SessionId(3);
  session.domain = DomainId(5);
  session.process = {1000, 42, 77};
  session.job = "a job with a name";
  session.limit = MiB(3);
  session.guarantee = MiB(1);
  session.priority = -2;
  session.weight = 4;
  session.expected = true;
  session.orphan = {Bytes(), MiB(2)};
  state.Apply(session);
  state.Apply(
      core::KeptChunk{ChunkId(9), 1, 2, DomainId(5), SessionId(), true});
  state.Apply(core::KeptExtent{ExtentId(2), DomainId(5), MiB(64)});
  core::KeptSlot slot;
  slot.slot.id = SlotId(8);
  slot.slot.pieces = {{ExtentId(2), MiB(1), KiB(64)},
                      {ExtentId(2), MiB(3), KiB(128)}};
  slot.session = SessionId(3);
  slot.device = 1;
  state.Apply(slot);
  core::Share share;
  share.id = ShareId(6);
  share.epoch = Epoch(7);
  share.domain = DomainId(5);
  share.name = "model";
  share.checksum = "0123456789";
  share.bytes = KiB(63);
  share.chunks = {ChunkId(9)};
  share.size = KiB(64);
  share.holders = {SessionId(3), SessionId(4)};
  share.payer = SessionId(3);
  state.Apply(core::KeptShare{1, share});
  state.ids.succession = 5;
  return state;
}

TEST_F(JournalTest, StateIsReadAsItWasWritten) {
  const core::KeptState written = Everything();
  ASSERT_TRUE(journal_->Rewrite(basis_, written).ok());
  const auto found = Found();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->basis.epoch, Epoch(7));
  ASSERT_EQ(found->basis.devices.size(), 1u);
  EXPECT_EQ(found->basis.devices[0].name, "host0");
  EXPECT_EQ(found->basis.devices[0].kind, "host");
  EXPECT_EQ(found->basis.devices[0].chunk_classes,
            std::vector<Bytes>({KiB(64), MiB(1)}));
  const core::KeptState& read = found->state;
  EXPECT_TRUE(read.sessions.at(SessionId(3)) ==
              written.sessions.at(SessionId(3)));
  const core::KeptChunk& chunk = read.chunks.at(ChunkId(9));
  EXPECT_EQ(chunk.device, 1u);
  EXPECT_EQ(chunk.size_class, 2u);
  EXPECT_EQ(chunk.domain, DomainId(5));
  EXPECT_FALSE(chunk.holder.ok());
  EXPECT_TRUE(chunk.shared);
  EXPECT_EQ(read.extents.at(ExtentId(2)).size, MiB(64));
  const core::KeptSlot& slot = read.slots.at(SlotId(8));
  ASSERT_EQ(slot.slot.pieces.size(), 2u);
  EXPECT_EQ(slot.slot.pieces[1].offset, MiB(3));
  EXPECT_EQ(slot.slot.pieces[1].size, KiB(128));
  EXPECT_EQ(slot.session, SessionId(3));
  const core::Share& share =
      read.shares.at({1, {DomainId(5), Epoch(7), ShareId(6)}});
  EXPECT_EQ(share.name, "model");
  EXPECT_EQ(share.checksum, "0123456789");
  EXPECT_EQ(share.bytes, KiB(63));
  EXPECT_EQ(share.chunks, std::vector<ChunkId>({ChunkId(9)}));
  EXPECT_EQ(share.holders, std::set<SessionId>({SessionId(3), SessionId(4)}));
  EXPECT_EQ(share.payer, SessionId(3));
  EXPECT_EQ(read.ids.slot, SlotId(8));
  EXPECT_EQ(read.ids.succession, 5u);
}

TEST_F(JournalTest, ChangesFollow) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  ASSERT_TRUE(journal_->Append({Chunk(10), Chunk(11)}).ok());
  ASSERT_TRUE(journal_
                  ->Append({core::Gone<ChunkId>{ChunkId(10)},
                            core::Gone<SlotId>{SlotId(8)},
                            core::Gone<ExtentId>{ExtentId(2)},
                            core::Gone<SessionId>{SessionId(3)},
                            core::Gone<core::ShareKey>{
                                {1, {DomainId(5), Epoch(7), ShareId(6)}}}})
                  .ok());
  const auto found = Found();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->state.chunks.size(), 2u);
  EXPECT_EQ(found->state.chunks.count(ChunkId(11)), 1u);
  EXPECT_TRUE(found->state.slots.empty());
  EXPECT_TRUE(found->state.extents.empty());
  EXPECT_TRUE(found->state.sessions.empty());
  EXPECT_TRUE(found->state.shares.empty());
  // Nor are their identifiers given again.
  EXPECT_EQ(found->state.ids.slot, SlotId(8));
  EXPECT_EQ(found->state.ids.session, SessionId(3));
}

TEST_F(JournalTest, FrameThatWasNotFinishedDoesNotCount) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  ASSERT_TRUE(journal_->Append({Chunk(10)}).ok());
  ASSERT_TRUE(journal_->Append({Chunk(11)}).ok());
  SetWord(LastFrame(), 0);  // Its length is written last.
  const auto found = Found();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->state.chunks.count(ChunkId(10)), 1u);
  EXPECT_EQ(found->state.chunks.count(ChunkId(11)), 0u);
}

TEST_F(JournalTest, DamageIsSeen) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  ASSERT_TRUE(journal_->Append({Chunk(10)}).ok());
  const off_t frame = LastFrame();
  const off_t end = frame + 16 + static_cast<off_t>(WordAt(frame)) * 8;
  for (off_t at = frame; at < end; at += 8) {
    const uint64_t word = WordAt(at);
    SetWord(at, word ^ 0x100000);
    EXPECT_TRUE(absl::IsDataLoss(Found().status())) << at - frame;
    SetWord(at, word);
  }
  EXPECT_TRUE(Found().ok());
}

TEST_F(JournalTest, OneThatWasNotBegunOrWasGivenUpIsOfNoUse) {
  EXPECT_TRUE(absl::IsDataLoss(Found().status()));
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  journal_->Break();
  EXPECT_TRUE(absl::IsDataLoss(Found().status()));
}

TEST_F(JournalTest, ProcessThatDiesWhileRewritingLeavesWhatWasThere) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  const off_t counts = Area();
  struct stat info;
  ASSERT_EQ(fstat(journal_->fd(), &info), 0);
  const off_t half = (info.st_size - kHeader) / 2;
  SetWord(counts == kHeader ? kHeader + half : kHeader, 0x1234);
  auto next = Journal::Open(UniqueFd(dup(journal_->fd())));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->Read()->state.chunks.size(), 1u);
  // And the next one can.
  core::KeptState state = Everything();
  state.Apply(Chunk(10));
  ASSERT_TRUE((*next)->Rewrite(basis_, state).ok());
  ASSERT_TRUE((*next)->Append({Chunk(11)}).ok());
  EXPECT_EQ(Found()->state.chunks.size(), 3u);
}

TEST_F(JournalTest, RewritingMakesALongOneShort) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  EXPECT_FALSE(journal_->long_enough());
  std::vector<core::Change> changes(1000, Chunk(10));
  while (!journal_->long_enough()) {
    ASSERT_TRUE(journal_->Append(changes).ok());
  }
  const auto blocks = [this] {
    struct stat info;
    EXPECT_EQ(fstat(journal_->fd(), &info), 0);
    return info.st_blocks * 512;
  };
  EXPECT_GT(blocks(), MiB(16).count());
  ASSERT_TRUE(journal_->Rewrite(basis_, Found()->state).ok());
  EXPECT_LT(blocks(), MiB(1).count());
  EXPECT_FALSE(journal_->long_enough());
  EXPECT_EQ(Found()->state.chunks.count(ChunkId(10)), 1u);
}

TEST_F(JournalTest, FullOneIsGivenUp) {
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  const std::vector<core::Change> changes(100'000, Chunk(10));
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = journal_->Append(changes);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::IsDataLoss(Found().status()));
}

TEST_F(JournalTest, OtherDescriptorsAndFormatsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Journal::Open(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC))).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Journal::Open(UniqueFd(memfd_create("other", MFD_CLOEXEC))).status()));
  ASSERT_TRUE(journal_->Rewrite(basis_, Everything()).ok());
  SetWord(8, WordAt(8) + 1);
  const absl::Status status = Found().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("format"));
}

TEST_F(JournalTest, ReadersAreCountedUntilOneServes) {
  EXPECT_EQ(journal_->CountReader(), 1u);
  EXPECT_EQ(journal_->CountReader(), 2u);
  journal_->NoteServing();
  EXPECT_EQ(journal_->CountReader(), 1u);
}

}  // namespace
}  // namespace mets::app
